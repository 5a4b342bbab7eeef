"""Local memory: lines of the words of lanes, tags of loads, stores that go out to L2."""

from __future__ import annotations

import numpy as np
import pytest

import hopsim as hs
from hopsim.config import load
from hopsim.hw.machine.access_notes import AccessNote
from hopsim.hw.timing.local_memory import LINE, LocalMemory
from tests.hw.timing.kernels import launch

CONFIG = load("h100-sxm")
LATENCY = CONFIG.l1.local_latency_cycles
RATE = CONFIG.l1.local_store_bandwidth_bytes_per_clk
SECTOR = CONFIG.l2.sector_bytes
THREADS = np.arange(64)


def touched(at: int | np.ndarray, count_bytes: int = 4, threads: np.ndarray = THREADS) -> tuple:
    note = AccessNote("w", "local", at, count_bytes, len(threads), False)
    memory = LocalMemory(0, thread_bytes=64, threads=64, places=4)
    offsets, *rest = memory.touched(note, threads)
    return (offsets.tolist(), *rest)


def test_a_word_of_all_lanes_is_a_line_of_each_warp() -> None:
    warp = 16 * LINE
    assert touched(8) == ([2 * LINE, warp + 2 * LINE], 2, 1, 8)
    assert touched(8, 8) == ([2 * LINE, 3 * LINE, warp + 2 * LINE, warp + 3 * LINE], 4, 2, 16)


def test_lanes_at_different_words_touch_a_line_for_each_and_a_sector_more_of_each() -> None:
    lanes = np.arange(32)
    halves = (lanes // 16 * 4).astype(np.uint64)
    assert touched(halves, threads=lanes) == ([0, LINE], 2, 2, 2 + 2 + 2)
    turns = (lanes % 2 * 4).astype(np.uint64)
    assert touched(turns, threads=lanes) == ([0, LINE], 2, 2, 4 + 4 + 2)
    own = (lanes % 16 * 4).astype(np.uint64)
    assert touched(own, threads=lanes)[1:] == (16, 16, 2 * 16 + 16)
    assert touched(0, threads=np.array([5])) == ([0], 1, 1, 2)


def test_what_has_ended_leaves_its_place() -> None:
    memory = LocalMemory(4096, thread_bytes=6, threads=40, places=3)
    begins = [memory.begin(cta) for cta in range(4)]
    assert begins == [4096, 4096 + 4 * LINE, 4096 + 8 * LINE, 4096]


TURNS = (16, 48)


def cycles(spread: int, step: str, *, warps: int = 1) -> float:
    """Return the cycles of a turn; lanes are at so many different words."""
    few, many = (measured(spread, step * turns, warps) for turns in TURNS)
    return (many - few) / (TURNS[1] - TURNS[0])


def measured(spread: int, turns: str, warps: int) -> float:
    body = f"""
    ld.param.u64 %rd0,[out]; mov.u32 %r9,%tid.x; mov.u32 %r1,words; and.b32 %r2,%r9,{spread - 1};
    mad.lo.u32 %r1,%r2,4,%r1; st.local.b32 [%r1],%r1; st.local.b32 [%r1+128],%r1; ld.local.b32 %r1,[%r1];
    add.u32 %r1,%r1,0; bar.sync 0;
    mov.u64 %rd10,%clock64;
    {turns}
    add.u32 %r3,%r1,1; bar.sync 0;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10;
    mul.wide.u32 %rd2,%r9,8; add.u64 %rd2,%rd0,%rd2; st.global.u64 [%rd2],%rd12; ret;"""
    chip = hs.Gpu("h100-sxm")
    out = chip.array(np.zeros(32 * warps, np.uint64))
    declarations = ".local .align 16 .b8 words[256];"
    launch(body, gpu=chip, block=32 * warps, args=[out], declarations=declarations)
    return float(out.numpy().max())


LOAD = "ld.local.b32 %r1,[%r1];"
BOTH = "ld.local.b32 %r1,[%r1]; st.local.b32 [%r1+128],%r1;"


@pytest.mark.parametrize(("spread", "tags"), [(1, 0), (4, 0), (16, 3), (32, 7)])
def test_a_load_looks_four_lines_up_in_a_cycle(spread: int, tags: int) -> None:
    assert cycles(spread, LOAD) == pytest.approx(LATENCY + tags, abs=2)


def test_warps_share_the_tags() -> None:
    assert cycles(32, LOAD, warps=8) == pytest.approx(8 * 32 / 4, rel=0.05)


def test_what_is_stored_goes_out_to_l2() -> None:
    """A warp alone passes L1 line by line; of eight warps the way out is full, with a sector more of each part of a line."""
    assert cycles(32, BOTH) - cycles(32, LOAD) == pytest.approx(32, abs=2)
    lines = 8 * 32
    assert cycles(32, BOTH, warps=8) == pytest.approx(lines * 2 * SECTOR / RATE, rel=0.02)
