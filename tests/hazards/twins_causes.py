"""Twins of which a finding must name the cause and leave out what follows from it: see `programs`, and `test_causes`."""

from __future__ import annotations

from tests.hazards.programs import FULL, Twin, init, wait

SYNC = "bar.sync 0;\n"
COPY_WORD = (
    "mad.lo.u32 %r0, %t, 4, %s;\nmul.wide.u32 %rd0, %t, 4;\nadd.u64 %rd0, %rd0, %in;\n"
    "cp.async.ca.shared.global [%r0], [%rd0], 4;\n"
)

CAUSES = [
    Twin(
        "missing-arriver for want of .noinc",
        init(count=128, name="a") + SYNC + COPY_WORD
        + f"-cp.async.mbarrier.arrive.shared::cta.b64 [%s+{FULL}]; //noinc\n"
        + f"+cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+{FULL}];\n" + wait(name="b"),
        (("HS205", "a", "b"),),
        verdict="deadlock",
    ),
    # Those that came have arrived besides, as they should: some of them are missing, and no .noinc mends that.
    Twin(
        "missing-arriver beside cp.async.mbarrier.arrive",
        init(count=128, name="a") + SYNC + COPY_WORD + f"cp.async.mbarrier.arrive.shared::cta.b64 [%s+{FULL}];\n"
        + f"setp.lt.u32 %p0, %t, 96;\n-@%p0 mbarrier.arrive.shared::cta.b64 _, [%s+{FULL}];\n"
        + f"+mbarrier.arrive.shared::cta.b64 _, [%s+{FULL}];\n" + wait(name="b"),
        (("HS205", "a", "b"),),
        verdict="deadlock",
    ),
]  # fmt: skip
