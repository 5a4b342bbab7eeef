from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.problem import GemmProblem

GOLDEN = Path(__file__).parent / "golden"
WS = "warp-specialized"


def loop(kernel: GemmKernel, label: str) -> list[str]:
    """Opcodes between `label:` and the branch back to it, guards left out."""
    lines = [line.strip() for line in kernel.ptx.splitlines()]
    body = lines[lines.index(f"{label}:") + 1 :]
    end = next(i for i, line in enumerate(body) if re.search(rf"bra\s+{label};", line))
    kept = [line for line in body[: end + 1] if line.endswith(";") or "; " in line]
    return [re.sub(r"^@!?%\w+ ", "", line).split()[0].rstrip(";") for line in kept]


@pytest.mark.parametrize(
    ("name", "schedule", "options"),
    [
        ("pipelined", "pipelined", {}),
        ("warp_specialized", WS, {"cluster": (2, 1), "persistent": True}),
    ],
)
def test_the_text_of_a_small_kernel(name: str, schedule: str, options: dict[str, Any]) -> None:
    """Set HOPSIM_UPDATE_GOLDEN=1 to write the files anew, then review the difference."""
    kernel = build(schedule, GemmProblem(200, 328, 144), (64, 16, 32), 2, **options)
    path = GOLDEN / f"gemm_{name}_64x16x32.ptx"
    if os.environ.get("HOPSIM_UPDATE_GOLDEN"):
        path.write_text(kernel.ptx)
    assert kernel.ptx == path.read_text()


def test_sizes_change_the_launch_and_not_the_text() -> None:
    small = build(WS, GemmProblem(200, 328, 144), (64, 64, 64), 3)
    large = build(WS, GemmProblem(1024, 512, 256), (64, 64, 64), 3)
    assert small.ptx == large.ptx
    assert (small.grid, large.grid) == ((24, 1, 1), (128, 1, 1))
    assert (small.scalars, large.scalars) == ((200, 328, 144), (1024, 512, 256))


def test_maps_are_innermost_first() -> None:
    kernel = build(WS, GemmProblem(200, 328, 144, "e4m3"), (128, 64, 128), 3, cluster=(2, 2))
    a, b, c = kernel.maps
    assert (a.operand, a.dtype, a.dims, a.strides_bytes) == ("A", "e4m3", (144, 200), (144,))
    assert (b.operand, b.dtype, b.dims, b.strides_bytes) == ("B", "e4m3", (144, 328), (144,))
    assert (c.operand, c.dtype, c.dims, c.strides_bytes) == ("C", "bf16", (328, 200), (656,))
    assert (a.box, b.box, c.box) == ((128, 64), (128, 32), (64, 64))
    assert (a.swizzle, b.swizzle, c.swizzle) == ("128B", "128B", "128B")


def test_launch_facts_of_the_entry() -> None:
    kernel = build(WS, GemmProblem(512, 512, 512), (128, 128, 64), 4, warpgroups=2, cluster=(1, 2))
    assert kernel.entry == "gemm_warp_specialized_bf16_bf16_128x128x64_s4_w2_c1x2"
    assert f".visible .entry {kernel.entry}(" in kernel.ptx
    assert (kernel.block, kernel.cluster) == (384, 2)
    for directive in (
        ".reqntid 384",
        ".maxnreg 104",
        ".explicitcluster",
        ".reqnctapercluster 2, 1, 1",
    ):
        assert f"\n{directive}\n" in kernel.ptx


@pytest.mark.parametrize("schedule", ["pipelined", WS])
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "e4m3"])
def test_building_twice_gives_the_same_text(schedule: str, dtype: str) -> None:
    texts = {
        build(schedule, GemmProblem(256, 256, 256, dtype), (128, 128, 64), 3).ptx for _ in range(2)
    }
    assert len(texts) == 1


def test_main_loops_are_short() -> None:
    problem = GemmProblem(4096, 4096, 4096)
    big = build(WS, problem, (128, 256, 64), 4, warpgroups=2, persistent=True, cluster=(2, 1))
    consumer, producer = loop(big, "K_LOOP"), loop(big, "LOAD_LOOP")
    assert [op.split(".")[0] for op in consumer].count("wgmma") == 4 + 3
    assert (len(consumer), len(producer)) == (28, 15)
    tall = build("pipelined", problem, (128, 128, 64), 4)
    assert (len(loop(tall, "K_LOOP")), loop(tall, "K_LOOP").count("bar.sync")) == (44, 1)


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_empty_barriers_expect_every_warp_that_reads_the_copies(cluster: tuple[int, int]) -> None:
    kernel = build(WS, GemmProblem(512, 512, 512), (128, 64, 64), 2, warpgroups=2, cluster=cluster)
    counts = re.findall(r"mbarrier\.init\S+ \[\S+\], (\d+);\s+// (\w+)", kernel.ptx)
    reached = cluster[0] + cluster[1] - 1
    assert counts == [("1", "full")] * 2 + [(str(8 * reached), "empty")] * 2


@pytest.mark.parametrize(
    ("cluster", "scope", "arrive"),
    [
        ((1, 1), "cta", "mbarrier.arrive.shared::cta.b64"),
        ((2, 1), "cta", "mbarrier.arrive.shared::cluster.b64"),
        ((2, 1), "cluster", "mbarrier.arrive.release.cluster.shared::cluster.b64"),
    ],
)
def test_release_reaches_as_far_as_the_cluster(
    cluster: tuple[int, int], scope: str, arrive: str
) -> None:
    problem = GemmProblem(512, 512, 512)
    kernel = build(WS, problem, (64, 64, 64), 2, cluster=cluster, release_scope=scope)
    assert arrive in loop(kernel, "K_LOOP")
    assert ("barrier.cluster.wait;" in kernel.ptx) == (cluster != (1, 1))


def test_multicast_only_where_the_cluster_shares_the_operand() -> None:
    def multicasts(cluster: tuple[int, int]) -> list[str]:
        kernel = build(WS, GemmProblem(512, 512, 512), (64, 64, 64), 2, cluster=cluster)
        return re.findall(r"multicast::cluster \S+ \[%(map_\w)", kernel.ptx)

    assert multicasts((1, 1)) == []
    assert multicasts((2, 1)) == ["map_b"]
    assert multicasts((1, 2)) == ["map_a"]
    assert multicasts((2, 2)) == ["map_a", "map_b"]


def test_rotating_store_buffers_wait_for_the_box_before_last() -> None:
    problem = GemmProblem(512, 512, 512)
    kernel = build(WS, problem, (64, 256, 64), 3, persistent=True, store_buffers=3)
    waits = re.findall(r"cp\.async\.bulk\.wait_group(\S*) (\d);", kernel.ptx)
    assert waits == [(".read", "0"), (".read", "1"), ("", "0")]
    everything = build(WS, problem, (64, 256, 64), 3, store_buffers=4)
    assert "wait_group.read" not in everything.ptx


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"problem": (64, 64, 64)}, "problem: expected a GemmProblem, got (64, 64, 64)"),
        ({"tile": "128x128x64"}, "tile: expected 3 whole numbers, got '128x128x64'"),
        ({"tile": (128, 64)}, "tile: expected 3 whole numbers, got (128, 64)"),
        ({"tile": (128, 64.0, 64)}, "tile: expected 3 whole numbers, got (128, 64.0, 64)"),
        ({"stages": "2"}, "stages: expected a whole number, got '2'"),
        ({"stages": None}, "stages: expected a whole number, got None"),
        ({"warpgroups": "2"}, "warpgroups: expected a whole number, got '2'"),
        ({"cluster": 2}, "cluster: expected 2 whole numbers, got 2"),
        ({"cluster": (2,)}, "cluster: expected 2 whole numbers, got (2,)"),
        ({"group_m": "8"}, "group_m: expected a whole number, got '8'"),
        ({"store_buffers": 1.5}, "store_buffers: expected a whole number, got 1.5"),
        ({"splits": "2"}, "splits: expected a whole number, got '2'"),
        ({"a_rows": "8"}, "a_rows: expected a whole number, got '8'"),
        ({"resident_ctas": "1"}, "resident_ctas: expected a whole number, got '1'"),
        ({"persistent": "no"}, "persistent: expected True or False, got 'no'"),
        ({"swizzle": "128B"}, "swizzle: expected one of Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128, got '128B'"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_told_in_words(given: dict[str, Any], words: str) -> None:
    usual: dict[str, Any] = {"problem": GemmProblem(64, 64, 64), "tile": (128, 64, 64), "stages": 2}
    with pytest.raises(LaunchError) as refused:
        build("cooperative", **(usual | given))
    assert (refused.value.where, refused.value.what) == ("gemm", words)
    assert refused.value.hint


def test_extents_of_a_problem_are_whole() -> None:
    with pytest.raises(LaunchError, match="m: expected a whole number, got 128.0"):
        GemmProblem(128.0, 128, 128)  # type: ignore[arg-type]
