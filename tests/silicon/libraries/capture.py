"""Compile kernels of a library and write what its host code would launch: `launches.json` and the PTX. No GPU is needed.

    python tests/silicon/libraries/capture.py flash_attention -I FLASHINFER/include -I FLASHINFER/cutlass/include ...
    python tests/silicon/libraries/capture.py deep_gemm -I TRTLLM -I CUTLASS/include

needs nvcc 13.0; what follows the collection goes to it. Programs that are there already, with the same flags, are kept;
`--again` makes them anew. The GEMMs of CUTLASS were captured in the same way, flags as in their `launches.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hopsim.cli.compact_json import dumps

HERE: Final = Path(__file__).parent
OPTIONS: Final = (
    "-std=c++17", "-O1", "-DNDEBUG", "--expt-relaxed-constexpr", "-gencode", "arch=compute_90a,code=compute_90a",
    "-DCUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL=1", "--keep",
)  # fmt: skip
TYPES: Final = {0: "uint8", 6: "float16", 7: "float32", 9: "bfloat16"}
SWIZZLES: Final = ("none", "32B", "64B", "128B")
MAP: Final = 0x7EA50A9C
"""In the upper half of each word of a tensor map, its number in the lower one: capture.h."""
PLACE_BIT, FIRST_PLACE = 36, 0x5A0
"""Array n begins at (FIRST_PLACE + n) << PLACE_BIT: capture.h."""
SCALARS: Final = {"u64": 8, "b64": 8, "u32": 4, "b32": 4}


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel to compile.

    Args:
        flags: the macros that choose it.
        problems: what its host code is asked for, launch by launch.
    """

    name: str
    flags: str
    problems: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """Programs of one source file.

    Args:
        arrays: what a launch of a program is given, in the order of `place_of`, by program and problem.
        outputs: names of arrays.
        flop: by program and problem.
        takes_sizes: whether the host program is told the sizes of the kernel's parameters.
    """

    source: str
    programs: tuple[Program, ...]
    arrays: Callable[[Program, tuple[int, ...]], list[dict[str, Any]]]
    outputs: tuple[str, ...]
    flop: Callable[[Program, tuple[int, ...]], int]
    takes_sizes: bool = False


def array(name: str, dtype: str, *shape: int, fill: str = "normal") -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "shape": list(shape), "fill": fill}


def macro(program: Program, name: str) -> int:
    found = re.search(rf"-D{name}=(\d+)", program.flags)
    assert found is not None, (program.name, name)
    return int(found[1])


# --- FlashAttention-3 ---------------------------------------------------------------------------------------

ATTENTION_TYPES: Final = {
    "f16": ("float16", "float16"), "bf16": ("bfloat16", "bfloat16"), "e4m3": ("float8_e4m3fn", "float16"),
}  # fmt: skip
ATTENTION_FLAGS: Final = {
    "f16": "-DELEMENT=cutlass::half_t",
    "bf16": "-DELEMENT=cutlass::bfloat16_t",
    "e4m3": "-DFP8 -DELEMENT=cutlass::float_e4m3_t -DOUT=cutlass::half_t",
}
# Queries, keys, heads of queries, heads of keys.
ATTENTION_PROBLEMS: Final = (
    (300, 412, 2, 1), (512, 512, 16, 16), (1024, 1024, 16, 16), (2048, 2048, 16, 16), (4096, 4096, 16, 16),
    (1000, 3000, 32, 8), (128, 8192, 16, 4),
)  # fmt: skip


def attention(dtype: str, head: int, causal: bool = False) -> Program:
    flags = f"{ATTENTION_FLAGS[dtype]} -DHEAD={head}" + (" -DMASK=kCausal" if causal else "")
    name = f"{dtype}_{head}" + ("_causal" if causal else "")
    return Program(name, flags, ATTENTION_PROBLEMS)


def attention_arrays(program: Program, problem: tuple[int, ...]) -> list[dict[str, Any]]:
    queries, keys, query_heads, key_heads = problem
    inside, outside = ATTENTION_TYPES[program.name.split("_")[0]]
    head = macro(program, "HEAD")
    return [
        array("q", inside, queries, query_heads, head),
        array("k", inside, keys, key_heads, head),
        array("v", inside, keys, key_heads, head),
        array("o", outside, queries, query_heads, head, fill="zero"),
        array("lse", "float32", query_heads, queries, fill="zero"),
    ]


def attention_flop(program: Program, problem: tuple[int, ...]) -> int:
    queries, keys, heads, _ = problem
    whole = 4 * queries * keys * heads * macro(program, "HEAD")
    return whole // 2 if program.name.endswith("causal") else whole


# --- DeepGEMM ------------------------------------------------------------------------------------------------


def scaled(n: int, k: int, choice: str, *rows: int) -> Program:
    """Name a GEMM of N columns and depth K after the tile that DeepGEMM's rules choose for so many rows."""
    tile = "x".join(re.findall(r"-DTILE_\w+=(\d+)", choice))
    return Program(
        f"{n}x{k}_{tile}", f"-DSHAPE_COLUMNS={n} -DSHAPE_DEPTH={k} {choice}", tuple((one,) for one in rows)
    )  # fmt: skip


def scaled_arrays(program: Program, problem: tuple[int, ...]) -> list[dict[str, Any]]:
    (m,), n, k = problem, macro(program, "SHAPE_COLUMNS"), macro(program, "SHAPE_DEPTH")
    blocks = -(-k // 128)
    return [
        array("a", "float8_e4m3fn", m, k),
        array("b", "float8_e4m3fn", n, k),
        array("a_scales", "float32", blocks, -(-m // 4) * 4),
        array("d", "bfloat16", m, n, fill="zero"),
        array("b_scales", "float32", -(-n // 128), blocks),
    ]


def scaled_flop(program: Program, problem: tuple[int, ...]) -> int:
    return 2 * problem[0] * macro(program, "SHAPE_COLUMNS") * macro(program, "SHAPE_DEPTH")


def chosen(rows: int, columns: int, stages: int, shared_by: int) -> str:
    return f"-DTILE_ROWS={rows} -DTILE_COLUMNS={columns} -DSTAGES={stages} -DSHARED_BY={shared_by}"


COLLECTIONS: Final = {
    "flash_attention": Collection(
        "attention.cu",
        (
            attention("f16", 64), attention("bf16", 64, causal=True), attention("f16", 128),
            attention("bf16", 128, causal=True), attention("bf16", 256), attention("e4m3", 128),
        ),
        attention_arrays, ("o", "lse"), attention_flop, takes_sizes=True,
    ),
    "deep_gemm": Collection(
        "fp8.cu",
        (
            scaled(576, 1024, chosen(128, 16, 8, 1), 200),
            scaled(4096, 7168, chosen(64, 32, 8, 1), 64),
            scaled(4096, 7168, chosen(128, 32, 8, 1), 128),
            scaled(4096, 7168, chosen(128, 128, 5, 2), 1024, 4096),
            scaled(2112, 7168, chosen(128, 16, 8, 1), 128),
            scaled(2112, 7168, chosen(128, 88, 6, 2), 2048),
            scaled(24576, 1536, chosen(128, 96, 6, 1), 128),
            scaled(24576, 1536, chosen(128, 128, 5, 2), 1024),
            scaled(7168, 2048, chosen(64, 56, 6, 1), 64),
            scaled(7168, 2048, chosen(128, 128, 5, 2), 2048, 4096),
            scaled(32768, 512, chosen(128, 128, 5, 1), 128),
        ),
        scaled_arrays, ("d",), scaled_flop,
    ),
}  # fmt: skip


def compile_program(source: Path, program: Program, given: list[str], folder: Path) -> str:
    """Return the PTX; the host program is `folder`/host."""
    command = ["nvcc", *OPTIONS, *given, *program.flags.split(), "--keep-dir", str(folder)]
    subprocess.run([*command, "-o", str(folder / "host"), str(source)], check=True)
    return (folder / f"{source.stem}.ptx").read_text(encoding="utf-8")


def parameter_bytes(ptx: str) -> list[int]:
    """Return the sizes of the kernel's parameters."""
    head = ptx[ptx.index(".entry") :]
    found = re.findall(
        r"\.param (?:\.align \d+ )?\.(\w+) [^\[,\s]+?(?:\[(\d+)\])?[,\n]", head[: head.index(")")]
    )
    return [int(size) if size else SCALARS[kind] for kind, size in found]  # fmt: skip


def launch_of(told: str, names: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return how the program is launched, and what of it hangs on the problem, from what a host program printed."""
    lines = told.splitlines()
    maps = [json.loads(line[4:]) for line in lines if line.startswith("MAP ")]
    (launch,) = (json.loads(line[7:]) for line in lines if line.startswith("LAUNCH "))
    row: dict[str, Any] = {"grid": launch["grid"], "arguments": [], "maps": [], "pointers": []}
    for argument, text in enumerate(launch["arguments"]):
        content = bytearray(bytes.fromhex(text))
        at = 0
        while at + 8 <= len(content):
            word = int.from_bytes(content[at : at + 8], "little")
            place, rest = word >> PLACE_BIT, word & ((1 << PLACE_BIT) - 1)
            if word >> 32 == MAP:
                one = maps[word & 0xFFFFFFFF]
                assert (one["il"], one["oob"], set(one["es"])) == (0, 0, {1}), one
                row["maps"].append(
                    {
                        "argument": argument, "at": at, "array": names[(one["addr"] >> PLACE_BIT) - FIRST_PLACE],
                        "box": one["box"], "swizzle": SWIZZLES[one["swizzle"]], "dims": one["dims"],
                        "strides": one["strides"], "dtype": TYPES[one["type"]],
                    }
                )  # fmt: skip
                content[at : at + 128] = bytes(128)
                at += 120
            elif not rest and 0 <= place - FIRST_PLACE < len(names):
                array_name = names[place - FIRST_PLACE]
                row["pointers"].append({"argument": argument, "at": at, "array": array_name})
                content[at : at + 8] = bytes(8)
            at += 8
        row["arguments"].append(content.hex())
    return {one: launch[one] for one in ("block", "cluster", "shared_bytes")}, row


def capture(
    collection: Collection, folder: Path, program: Program, given: list[str]
) -> dict[str, Any]:
    """Compile a program and return its entry; the PTX is written beside."""
    with tempfile.TemporaryDirectory() as build:
        ptx = compile_program(folder / collection.source, program, given, Path(build))
        launches: list[dict[str, Any]] = []
        how: dict[str, Any] = {}
        for problem in program.problems:
            arrays = collection.arrays(program, problem)
            words = [*problem, *(parameter_bytes(ptx) if collection.takes_sizes else ())]
            told = subprocess.run(
                [str(Path(build) / "host"), *map(str, words)], check=True, capture_output=True, text=True
            )  # fmt: skip
            found, row = launch_of(told.stdout, [one["name"] for one in arrays])
            assert how in ({}, found), (program.name, how, found)
            how = found
            name = "x".join(map(str, problem))
            launches.append(
                {
                    "name": name, "flop": collection.flop(program, problem), **row, "arrays": arrays,
                    "outputs": list(collection.outputs),
                }
            )  # fmt: skip
    (folder / f"{program.name}.ptx").write_text(ptx, encoding="utf-8")
    digest = hashlib.sha256(ptx.encode()).hexdigest()
    return {"program": program.name, "flags": program.flags, "ptx_sha256": digest, **how, "launches": launches}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", choices=COLLECTIONS)
    parser.add_argument("--again", action="store_true")
    options, given = parser.parse_known_args()
    collection, folder = COLLECTIONS[options.collection], HERE / options.collection
    file = folder / "launches.json"
    held: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    kept = {(one["program"], one["flags"]): one for one in held}
    rows: list[dict[str, Any]] = []
    for program in collection.programs:
        known = kept.get((program.name, program.flags))
        names = ["x".join(map(str, problem)) for problem in program.problems]
        if known and [one["name"] for one in known["launches"]] == names and not options.again:
            rows.append(known)
        else:
            print(program.name, flush=True)
            rows.append(capture(collection, folder, program, given))
    file.write_text(dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
