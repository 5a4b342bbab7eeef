"""Twin programs about bytes with a rule of their own: those of mbarriers, and what .nc loads read; see `programs`."""

from __future__ import annotations

from tests.hazards.programs import OTHER, Twin, expect, get, init, load, put, wait

SYNC = "bar.sync 0;\n"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%s+8192];"
USED = init() + SYNC + f"@%leader {ARRIVE}\n" + wait() + SYNC
INVAL = "@%leader mbarrier.inval.shared::cta.b64 [%s+8192];"
SECOND = "setp.eq.u32 %p0, %t, 32;\n@%p0 "
TEST = "mbarrier.test_wait.parity.shared::cta.b64 %p3, [%s+8192], 0; //a\n"

OBJECTS = [
    Twin(
        "init over what another thread stores",
        f"{SECOND}st.shared.b64 [%s+8192], %rd1; //a\n+{SYNC}" + init(name="b") + SYNC,
        (("HS500", "a", "b"),),
        threads=64,
    ),
    Twin(
        "init over a tile that others read",
        put() + SYNC + get("a") + f"+{SYNC}@%leader mbarrier.init.shared::cta.b64 [%s+512], 1; //b\n",
        (("HS501", "a", "b"),),
        threads=64,
    ),
    Twin(
        "init by every warp",
        f"-mbarrier.init.shared::cta.b64 [%s+8192], 1; //a\n+{init()}{SYNC}@%leader {ARRIVE}\n",
        (("HS500", "a", "a"),),
        threads=64,
    ),
    Twin(
        "init-not-visible of a barrier that another lane initialises",
        "setp.lt.u32 %p1, %t, 4;\nmad.lo.u32 %r0, %t, 8, %s;\n"
        "@%p1 mbarrier.init.shared::cta.b64 [%r0+8192], 1; //a\n+bar.warp.sync -1;\n"
        "@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8200]; //b\n",
        (("HS209", "a", "b"),),
        threads=32,
    ),
    Twin(
        "inval, then data of another thread",
        f"{USED}{INVAL} //a\n+{SYNC}{SECOND}st.shared.b64 [%s+8192], %rd1; //b\n",
        (("HS500", "a", "b"),),
        threads=64,
    ),
    Twin(
        "inval, then an init of another thread",
        f"{USED}{INVAL} //a\n+{SYNC}{SECOND}mbarrier.init.shared::cta.b64 [%s+8192], 1; //b\n",
        (("HS500", "a", "b"),),
        threads=64,
    ),
    Twin(
        "inval-in-flight of an arrive of another thread",
        init(count=2)
        + f"{SYNC}{SECOND}{ARRIVE} //a\n@!%leader bra END;\n{ARRIVE}\n"
        + wait(mark="+")
        + f"{INVAL} //b\nEND:\n",
        (("HS214", "a", "b"),),
        threads=64,
    ),
    Twin(
        "inval-in-flight of a relaxed arrive of another thread",
        init(count=2)
        + f"{SYNC}{SECOND}mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%s+8192]; //a\n@!%leader bra END;\n{ARRIVE}\n"
        + wait(mark="+")
        + f"{INVAL} //b\nEND:\n",
        (("HS214", "a", "b"),),
        threads=64,
    ),
    Twin(
        "inval-in-flight of a test that says no",
        init() + f"{SYNC}{SECOND}{TEST}+{SYNC}{INVAL} //b\n",
        (("HS214", "a", "b"),),
        threads=64,
    ),
    Twin(
        "inval-in-flight of lanes of the same warp that wait",
        init()
        + f"{SYNC}@%leader {ARRIVE}\n@%leader bra OWN;\n"
        + wait(name="a")
        + "OWN:\n"
        + wait()
        + f"+bar.warp.sync -1;\n{INVAL} //b\n",
        (("HS214", "a", "b"),),
        threads=32,
    ),
    Twin(
        "inval-in-flight of an arrive that follows cp.async",
        init()
        + f"{SYNC}@!%leader bra END;\ncp.async.ca.shared.global [%s], [%in], 16;\n"
        + "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+8192]; //a\n"
        + wait(mark="+")
        + f"{INVAL} //b\ncp.async.wait_all;\nEND:\n",
        (("HS214", "a", "b"),),
        threads=32,
    ),
    Twin(
        "barrier-storage-reused while another thread tests it",
        init(name="a")
        + f"{SYNC}{SECOND}{TEST.replace('//a', '')}"
        + f"+{SYNC}+{INVAL}\n@%leader st.shared.b64 [%s+8192], %rd1; //b\n",
        (("HS213", "a", "b"),),
        threads=64,
    ),
    Twin(
        "barrier-storage-reused, read as data",
        init(name="a") + f"{SYNC}-ld.shared.b64 %rd1, [%s+8192]; //b\n+ld.shared.b64 %rd1, [%s+8200];\n".replace(
            SYNC, f"@%leader st.shared.b64 [%s+8200], 0;\n{SYNC}"
        ),
        (("HS213", "a", "b"),),
    ),
    Twin(
        "uninitialised-shared-read of what was a barrier",
        f"{USED}{INVAL}\n+@%leader st.shared.b64 [%s+8192], 0;\n{SYNC}ld.shared.b64 %rd1, [%s+8192]; //b\n",
        (("HS701", "", "b"),),
    ),
]  # fmt: skip

AT = "mul.wide.u32 %rd0, %t, 4;\nadd.u64 %rd0, %out, %rd0;\n"
NON_COHERENT = [
    Twin(
        "nc-load-of-written-data, written by the thread itself",
        f"{AT}st.global.b32 [%rd0], %t; //a\n-ld.global.nc.b32 %r1, [%rd0]; //b\n+ld.global.b32 %r1, [%rd0];\n",
        (("HS114", "a", "b"),),
    ),
    Twin(
        "nc-load-of-written-data, read before",
        f"{AT}-ld.global.nc.b32 %r1, [%rd0]; //a\n+ld.global.nc.b32 %r1, [%in];\n"
        "ld.global.b32 %r2, [%rd0];\nst.global.b32 [%rd0], %t; //b\n",
        (("HS114", "a", "b"),),
    ),
    Twin(
        "nc-load-of-written-data behind a barrier",
        f"@%leader st.global.b16 [%out+2], 1; //a\n{SYNC}-ld.global.nc.u16 %r1, [%out+2]; //b\n"
        "+ld.global.nc.u16 %r1, [%out];\n",
        (("HS114", "a", "b"),),
    ),
    Twin(
        # Warp 0 has waited, and warp 1 arrives once more: that may have stood for the arrival of warp 0.
        "phase-unconsumed by one of two who arrive",
        init(count=2) + init(OTHER) + SYNC + f"@%leader {ARRIVE} //a\n{SECOND}{ARRIVE}\n"
        + (expect(OTHER) + load(barrier=OTHER)).replace("%leader", "%p0") + "setp.eq.u32 %p2, %w, 0;\n@%p2 bra BOTH;\n"
        + wait(OTHER) + f"-@%p0 {ARRIVE} //b\nBOTH:\n"
        + wait(),
        (("HS215", "a", "b"),),
        threads=64,
    ),
    Twin(
        "phase-unconsumed by lanes of one warp",
        init(count=32) + f"{SYNC}{ARRIVE} //a\n-@%leader {ARRIVE} //b\n{wait()}+@%leader {ARRIVE}\n",
        (("HS215", "", "b"),),
        threads=32,
    ),
]  # fmt: skip
