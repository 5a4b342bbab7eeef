"""Twins whose strong accesses do not race, but may find what stood there before: see `programs`."""

from __future__ import annotations

from hopsim.hazards.facts import CheckOptions
from tests.hazards.programs import Twin, only

# The first CTA stores a word and a flag, both by strong accesses; the second waits for the flag and loads the word.
MESSAGE = (
    "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n@%leader STORE.global.b32 [%out+64], 7; //a\n"
    "RELEASE@%leader st.relaxed.gpu.global.b32 [%out], 1; //f\nbra END;\nREADER:\n"
    "ld.relaxed.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\nACQUIRE"
    "LOAD.global.b32 %r3, [%out+64]; //b\nst.global.b32 [%out+128], %r3;\nEND:\n"
)
# Of three CTAs the one that draws the last ticket sums what the others stored by strong accesses.
TICKET = (
    "mov.u32 %r9, %ctaid.x;\nmul.wide.u32 %rd0, %r9, 4;\nadd.u64 %rd0, %rd0, %out;\n@!%leader bra DRAWN;\n"
    "st.volatile.global.b32 [%rd0+64], 7; //a\nBEFOREatom.global.inc.u32 %r1, [%out], 3; //f\nst.shared.b32 [%s], %r1;\n"
    "DRAWN:\nbar.sync 0;\nld.shared.b32 %r2, [%s];\nsetp.ne.u32 %p0, %r2, 2;\n@%p0 bra END;\nBEHIND"
    "mul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %out;\nsetp.gt.u32 %p1, %t, 2;\n@%p1 bra END;\n"
    "ld.volatile.global.b32 %r3, [%rd1+64]; //b\nst.global.b32 [%rd1+128], %r3;\nEND:\n"
)
FENCE = "fence.acq_rel.gpu;\n"


def message(
    release: str, acquire: str, store: str = "st.volatile", load: str = "ld.volatile"
) -> str:
    """Return a program that hands on a word, with what stands before and behind the flag."""
    return (
        MESSAGE.replace("STORE", store).replace("LOAD", load).replace("RELEASE", release).replace("ACQUIRE", acquire)
    )  # fmt: skip


STALE = [
    Twin(
        "volatile word before a flag with no fence",
        message(only("+", FENCE), FENCE),
        (("HS216", "a", "b"),),
        threads=32,
        ctas=2,
    ),
    Twin(
        "volatile word behind a flag with no fence",
        message(FENCE, only("+", FENCE)),
        (("HS216", "a", "b"),),
        verdict="clean",
        level="note",
        threads=32,
        ctas=2,
    ),
    Twin(
        "relaxed word before a flag with no release",
        message(only("+", FENCE), FENCE, "st.relaxed.gpu", "ld.relaxed.gpu"),
        (("HS216", "a", "b"),),
        threads=32,
        ctas=2,
    ),
    Twin(
        "volatile word and a flag with fences of too narrow a scope",
        message("-fence.acq_rel.cta;\n+" + FENCE, FENCE),
        (("HS217", "a", "b"),),
        threads=32,
        ctas=2,
    ),
    Twin(
        "volatile word behind a flag with no fence, strictly",
        message(FENCE, only("+", FENCE)),
        (("HS216", "a", "b"),),
        threads=32,
        ctas=2,
        options=CheckOptions(unacquired_reads="hazard"),
    ),
    Twin(
        "volatile word behind the fence that a flag relies on",
        message(FENCE, FENCE, "-st.volatile", "ld.volatile")
        .replace("@%leader -st", "+@%leader st")
        .replace(
            "@%leader st.relaxed",
            "-@%leader st.volatile.global.b32 [%out+64], 7; //a\n@%leader st.relaxed",
        ),
        (("HS216", "a", "b"),),
        threads=32,
        ctas=2,
    ),
    # As in CUDA's Programming Guide, "Memory Fence Functions", which has no fence behind the ticket.
    Twin(
        "volatile sums before a ticket with no fence",
        TICKET.replace("BEFORE", only("+", "membar.gl;")).replace("BEHIND", "membar.gl;\n"),
        (("HS216", "a", "b"),),
        threads=64,
        ctas=3,
    ),
    Twin(
        "volatile sums behind a ticket with no fence",
        TICKET.replace("BEFORE", "membar.gl;\n").replace("BEHIND", only("+", "membar.gl;")),
        (("HS216", "a", "b"),),
        verdict="clean",
        level="note",
        threads=64,
        ctas=3,
    ),
    Twin(
        "volatile words of all lanes before a flag of one, told by a shuffle",
        "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd0, %t, 4;\nadd.u64 %rd0, %rd0, %out;\nsetp.ne.u32 %p0, %r1, 0;\n"
        "@%p0 bra READER;\nst.volatile.global.b32 [%rd0+64], %t; //a\nbar.warp.sync -1;\n+membar.gl;\n"
        "@%leader st.volatile.global.b32 [%out], 1;\nbra END;\nREADER:\nmov.b32 %r2, 0;\n"
        "@%leader ld.volatile.global.b32 %r2, [%out];\nshfl.sync.idx.b32 %r3, %r2, 0, 31, -1;\nsetp.eq.u32 %p1, %r3, 0;\n"
        "@%p1 bra READER;\nmembar.gl;\nxor.b32 %r4, %t, 1;\nmul.wide.u32 %rd0, %r4, 4;\nadd.u64 %rd0, %rd0, %out;\n"
        "ld.volatile.global.b32 %r5, [%rd0+64]; //b\nst.global.b32 [%rd0+256], %r5;\nEND:\n",
        (("HS216", "a", "b"),),
        threads=32,
        ctas=2,
    ),
]
"""Bad and good twins of words that strong accesses hand on."""

HINTS = [
    Twin(
        "a word to stop at that decides a branch, behind a ticket of another use",
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n@%leader st.volatile.global.b32 [%out+64], 1;\n"
        "@%leader red.relaxed.gpu.global.add.u32 [%out], 1;\nbra END;\nREADER:\n"
        "ld.relaxed.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\n"
        "ld.volatile.global.b32 %r3, [%out+64];\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 bra END;\nst.global.b32 [%out+128], 1;\nEND:\n",
        (),
        threads=32,
        ctas=2,
    ),
    Twin(
        "a bound that atomics lower, looked at behind a ticket of another use",
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n"
        "@%leader red.relaxed.gpu.global.max.u32 [%out+64], 5;\n@%leader red.relaxed.gpu.global.add.u32 [%out], 1;\nbra END;\n"
        "READER:\nld.relaxed.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\n"
        "ld.relaxed.gpu.global.b32 %r3, [%out+64];\nst.global.b32 [%out+128], %r3;\nEND:\n",
        (),
        threads=32,
        ctas=2,
    ),
    Twin(
        "a word looked at again after its own flag",
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n@%leader st.relaxed.gpu.global.b32 [%out], 3;\n"
        "bra END;\nREADER:\nld.relaxed.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\n"
        "ld.relaxed.gpu.global.b32 %r3, [%out];\nst.global.b32 [%out+128], %r3;\nEND:\n",
        (),
        threads=32,
        ctas=2,
    ),
]
"""Strong reads of what may be old, and that is no harm: nothing is found."""
