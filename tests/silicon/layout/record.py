"""Record on a Hopper GPU what the layout package claims: python tests/silicon/layout/record.py OUT_DIR

Needs nvcc, cupy and cuda-bindings.  Writes layout.json (cases and facts) and layout.npz (bytes),
which the tests of this folder replay without a GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cupy as cp
import numpy as np
from cuda.bindings import driver

HERE = Path(__file__).parent
SIZES = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4]
FIELDS = [
    "global_address",
    "rank",
    "box_dim",
    "global_dim",
    "global_stride",
    "element_stride",
    "elemtype",
    "interleave_layout",
    "swizzle_mode",
    "fill_mode",
]
OPS = ["store", "add", "min", "max", "inc", "dec", "and", "or", "xor"]


def encode(spec: dict, address: int) -> tuple[int, bytes]:
    rank = len(spec["dims"])
    es = spec.get("element_strides") or [1] * rank
    err, tensor_map = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType(spec["data_type"]),
        rank,
        address + spec.get("offset", 0),
        [driver.cuuint64_t(v) for v in spec["dims"]],
        [driver.cuuint64_t(v) for v in spec["strides"] or [0]],
        [driver.cuuint32_t(v) for v in spec["box"]],
        [driver.cuuint32_t(v) for v in es],
        driver.CUtensorMapInterleave(spec.get("interleave", 0)),
        driver.CUtensorMapSwizzle(spec.get("swizzle", 0)),
        driver.CUtensorMapL2promotion(spec.get("l2_promotion", 0)),
        driver.CUtensorMapFloatOOBfill(spec.get("oob_fill", 0)),
    )
    ok = int(err) == 0
    return int(err), ctypes.string_at(tensor_map.getPtr(), 128) if ok else b""


class Probe:
    def __init__(self) -> None:
        cubin = "/tmp/layout_probe.cubin"
        if not Path(cubin).exists():
            subprocess.run(
                ["nvcc", "-arch=sm_90a", "-cubin", "-o", cubin, HERE / "probe.cu"], check=True
            )
        module = cp.RawModule(path=cubin)
        names = ("tma_load", "tma_store", "wgmma_b", "wgmma_a", "replace")
        self.k = {name: module.get_function(name) for name in names}
        for kernel in self.k.values():
            kernel.max_dynamic_shared_size_bytes = 128 * 1024
        self.memory = cp.zeros(1 << 20, cp.uint8)
        self.map = cp.zeros(256, cp.uint8)

    def put_map(self, spec: dict) -> None:
        err, raw = encode(spec, self.memory.data.ptr)
        if err:
            raise RuntimeError(f"encode {err}: {spec}")
        self.map[:128] = cp.frombuffer(raw, cp.uint8)

    def coords(self, spec: dict) -> cp.ndarray:
        return cp.asarray(np.array((spec["coords"] + [0] * 5)[:5], np.int32))

    def load(self, spec: dict, expected: int, dump: int) -> tuple[int, np.ndarray]:
        self.put_map(spec)
        out, status = cp.zeros(dump, cp.uint8), cp.zeros(1, cp.int32)
        args = (
            self.map,
            np.int32(len(spec["dims"])),
            self.coords(spec),
            np.uint32(spec["smem"]),
            np.uint32(expected),
            np.uint32(dump),
            out,
            status,
        )
        self.k["tma_load"]((1,), (128,), args, shared_mem=max(dump, 1024))
        cp.cuda.runtime.deviceSynchronize()
        return int(status[0]), out.get()

    def store(self, spec: dict, op: int, data: np.ndarray) -> np.ndarray:
        self.put_map(spec)
        args = (
            self.map,
            np.int32(len(spec["dims"])),
            self.coords(spec),
            np.uint32(spec["smem"]),
            np.int32(op),
            np.uint32(data.size),
            cp.asarray(data),
        )
        self.k["tma_store"]((1,), (128,), args, shared_mem=max(data.size, 1024))
        cp.cuda.runtime.deviceSynchronize()
        return self.memory[: spec["extent"]].get()


def random_spec(rng: np.random.Generator, data_type: int) -> dict:
    size = SIZES[data_type]
    rank = int(rng.integers(1, 6))
    swizzle = int(rng.integers(0, 4))
    limit = (16 << swizzle) if swizzle else 128
    inner = int(rng.integers(1, limit // 16 + 1)) * 16 // size
    box = [inner] + [int(rng.integers(1, 5)) for _ in range(rank - 1)]
    if rank == 2:
        box[1] = int(rng.integers(1, 17))
    es = [1] + [int(rng.integers(1, 4)) if rng.random() < 0.4 else 1 for _ in range(rank - 1)]
    dims = [int(rng.integers(1, 2 * inner + 2))]
    dims += [int(rng.integers(1, 7)) for _ in range(rank - 1)]
    strides, extent = [], dims[0] * size
    for d in dims[1:]:
        step = -(-extent // 16) * 16 + 16 * int(rng.integers(0, 2))
        strides.append(step)
        extent = step * (d - 1) + extent
    coords = [
        int(rng.integers(-b, d + b)) if rng.random() < 0.6 else 0
        for b, d in zip(box, dims, strict=True)
    ]
    if rng.random() < 0.9:  # an inner coordinate off 16 bytes is an illegal instruction
        coords[0] -= coords[0] % (16 // size)
    return {
        "data_type": data_type,
        "dims": dims,
        "strides": strides,
        "box": box,
        "element_strides": es,
        "swizzle": swizzle,
        "coords": coords,
        "smem": 128 * int(rng.integers(0, 9)),
        "extent": extent,
    }


def counts(spec: dict) -> list[int]:
    es = spec["element_strides"]
    return [spec["box"][0]] + [-(-b // e) for b, e in zip(spec["box"][1:], es[1:], strict=True)]


def load_specs() -> list[dict]:
    rng = np.random.default_rng(20)
    specs = []
    while len(specs) < 70:
        spec = random_spec(rng, int(rng.choice([0, 1, 2, 4])))
        if spec["extent"] <= 1 << 16 and np.prod(counts(spec)) * SIZES[spec["data_type"]] <= 4096:
            specs.append(spec)
    base = {
        "data_type": 1,
        "dims": [64, 32],
        "strides": [128],
        "element_strides": [1, 1],
        "smem": 0,
        "extent": 4096,
    }
    for swizzle, inner in (
        (3, 32),
        (3, 16),
        (3, 8),
        (3, 24),
        (2, 16),
        (2, 24),
        (2, 8),
        (1, 8),
        (3, 64),
    ):
        specs.append({**base, "box": [inner, 16], "swizzle": swizzle, "coords": [0, 0]})
        specs.append(
            {**base, "box": [inner, 3], "swizzle": swizzle, "coords": [8, 30], "smem": 128}
        )
    one = {"data_type": 0, "strides": [], "element_strides": [1], "smem": 0, "extent": 64}
    for dims, box, swizzle, coords in (
        (14, 16, 0, 0),
        (14, 16, 0, 1),
        (16, 16, 0, 0),
        (16, 16, 0, 1),
        (16, 16, 1, 0),
        (16, 16, 1, 1),
        (32, 16, 1, 5),
        (64, 32, 1, 7),
    ):
        specs.append({**one, "dims": [dims], "box": [box], "swizzle": swizzle, "coords": [coords]})
    for smem in (16, 32, 64, 1024 + 64):
        specs.append({**base, "box": [32, 8], "swizzle": 0, "coords": [0, 0], "smem": smem})
        specs.append({**base, "box": [64, 8], "swizzle": 3, "coords": [0, 0], "smem": smem})
    for coords in (
        [64, 0],
        [0, 32],
        [-64, 0],
        [-8, -1],
        [-1, -1],
        [2**31 - 1, 2**31 - 1],
        [-(2**31), -(2**31)],
        [1000, 1000],
    ):
        specs.append({**base, "box": [32, 8], "swizzle": 0, "coords": coords})
    specs.append(
        {**base, "box": [32, 8], "swizzle": 0, "coords": [0, 0], "element_strides": [2, 1]}
    )
    specs.append(
        {**base, "box": [32, 7], "swizzle": 3, "coords": [8, 1], "element_strides": [3, 3]}
    )
    specs.append(
        {**base, "box": [32, 8], "swizzle": 2, "coords": [40, -3], "element_strides": [1, 2]}
    )
    specs.append(
        {**base, "dims": [64, 4], "strides": [0], "box": [32, 6], "swizzle": 2, "coords": [8, -1]}
    )
    for data_type in (6, 7, 9, 10, 11, 12):
        size = SIZES[data_type]
        specs.append(
            {
                **base,
                "data_type": data_type,
                "dims": [128 // size - 1, 3],
                "box": [64 // size, 4],
                "swizzle": 0,
                "coords": [-16 // size, -1],
                "oob_fill": 1,
            }
        )
        specs.append(
            {
                **base,
                "data_type": data_type,
                "dims": [128 // size, 3],
                "box": [64 // size, 2],
                "swizzle": 0,
                "coords": [0, 50],
                "oob_fill": 1,
            }
        )
    for data_type in (6, 7, 8, 9, 10, 11, 12):  # what the types do to special values
        specs.append(
            {
                **base,
                "data_type": data_type,
                "dims": [128 // SIZES[data_type], 4],
                "strides": [128],
                "box": [128 // SIZES[data_type], 4],
                "swizzle": 0,
                "coords": [0, 0],
                "special": 1,
            }
        )
    return specs


def special_words() -> np.ndarray:
    """Give 32-bit patterns at the edges of tf32 rounding and of denormals; 128 of them."""
    heads = [
        0x3F800000,
        0xBF800000,
        0x7F7FE000,
        0x7F800000,
        0x7FC00000,
        0x7F800001,
        0x00000000,
        0x00400000,
        0x80000000,
        0x807FE000,
        0x00800000,
        0xFF800000,
        0x40490FDB & ~0x1FFF,
        0x7FFFE000,
        0x7F802000,
        0x0000E000,
    ]
    tails = [0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x3000, 0x2FFF]
    return np.array([h | t for h in heads for t in tails], np.uint32)


def isolated(calls: list[str]) -> list[np.ndarray | str]:
    """Evaluate each call on a fresh probe `p` in its own process: a fault ends only that one.

    Returns: for each the bytes it gave, or the last line of its error.
    """

    def run(call: str) -> np.ndarray | str:
        code = f"import record; p = record.Probe(); print({call}.tobytes().hex())"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True
        )
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["no message"])[-1]
        return np.frombuffer(bytes.fromhex(done.stdout.strip()), np.uint8)

    with ThreadPoolExecutor(12) as pool:
        return list(pool.map(run, calls))


def load_once(probe: Probe, i: int) -> np.ndarray:
    """Return 4 bytes, the transaction count that completed the barrier or 0, then the dump."""
    spec = load_specs()[i]
    data = np.random.default_rng(21).integers(0, 256, 1 << 16, dtype=np.uint8)
    if spec.get("special"):
        data[:512] = special_words().view(np.uint8)
    probe.memory[: data.size] = cp.asarray(data)
    n, size = counts(spec), SIZES[spec["data_type"]]
    rows = int(np.prod(n[1:], dtype=int))
    dense, padded = n[0] * size * rows, max(16 << spec["swizzle"], n[0] * size) * rows
    dump = -(-(spec["smem"] + padded + 128) // 128) * 128
    for expected in dict.fromkeys((dense, padded)):
        status, out = probe.load(spec, expected, dump)
        if status:
            break
    assert (out[: spec["smem"]] == 0xA5).all()
    return np.concatenate(
        [np.array([expected * status], np.uint32).view(np.uint8), out[spec["smem"] :]]
    )


def record_loads(facts: dict, arrays: dict) -> None:
    specs = load_specs()
    facts["load"] = []
    found = isolated([f"record.load_once(p, {i})" for i in range(len(specs))])
    for i, (spec, got) in enumerate(zip(specs, found, strict=True)):
        if isinstance(got, str):
            facts["load"].append({**spec, "error": got.rpartition(":")[2].strip()})
        else:
            facts["load"].append({**spec, "expected": int(got[:4].view(np.uint32)[0])})
            arrays[f"load{i}"] = got[4:]


def store_specs() -> list[dict]:
    rng = np.random.default_rng(22)
    specs = []
    while len(specs) < 50:
        spec = random_spec(rng, int(rng.choice([0, 1, 2, 4])))
        if len(specs) >= 12:  # a negative coordinate is an illegal instruction in a store
            spec["coords"] = [max(c, 0) for c in spec["coords"]]
        if spec["extent"] <= 6000 and np.prod(counts(spec)) * SIZES[spec["data_type"]] <= 4096:
            specs.append(spec)
    plain = {
        "data_type": 1,
        "dims": [64, 8],
        "strides": [128],
        "element_strides": [1, 1],
        "smem": 0,
        "extent": 1024,
        "box": [32, 4],
        "swizzle": 2,
    }
    specs += [
        {**plain, "coords": c}
        for c in ([-8, 0], [0, -1], [-32, 0], [64, 0], [56, 6], [0, 8], [2**31 - 8, 0])
    ]
    specs += [{**plain, "coords": [8, 1], "element_strides": e} for e in ([1, 2], [2, 1], [3, 3])]
    for data_type in (7, 10, 11, 12):
        specs.append(
            {
                "data_type": data_type,
                "dims": [32, 4],
                "strides": [128],
                "box": [32, 4],
                "element_strides": [1, 1],
                "swizzle": 0,
                "coords": [0, 0],
                "smem": 0,
                "extent": 512,
                "special": 1,
            }
        )
    return specs


def store_once(probe: Probe, i: int) -> np.ndarray:
    spec = store_specs()[i]
    data = np.random.default_rng(23).integers(0, 256, 16384, dtype=np.uint8)
    if spec.get("special"):
        data[:512] = special_words().view(np.uint8)
    probe.memory[:8192] = 0x5A
    return probe.store(spec, 0, data)


def record_stores(facts: dict, arrays: dict) -> None:
    specs = store_specs()
    facts["store"] = []
    found = isolated([f"record.store_once(p, {i})" for i in range(len(specs))])
    for i, (spec, got) in enumerate(zip(specs, found, strict=True)):
        failed = isinstance(got, str)
        facts["store"].append({**spec, "error": got.rpartition(":")[2].strip()} if failed else spec)
        if not isinstance(got, str):
            arrays[f"store{i}"] = got


REDUCE_TYPES = {
    0: "uint8",
    1: "uint16",
    2: "uint32",
    3: "int32",
    4: "uint64",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "bfloat16",
    10: "float32_ftz",
    11: "tfloat32",
    12: "tfloat32_ftz",
}


def reduce_operands(data_type: int) -> tuple[np.ndarray, np.ndarray]:
    """Two operands of 512 bytes: edges of the type against each other, then random bits."""
    rng = np.random.default_rng(24 + data_type)
    raw = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[SIZES[data_type]]
    old, new = (rng.integers(0, 256, 512, dtype=np.uint8).view(raw) for _ in range(2))
    edges = {
        6: [
            0,
            0x8000,
            1,
            0x83FF,
            0x3C00,
            0xBC00,
            0x7BFF,
            0xFBFF,
            0x7C00,
            0xFC00,
            0x7E00,
            0x7C01,
            0xFE01,
        ],
        9: [
            0,
            0x8000,
            1,
            0x807F,
            0x3F80,
            0xBF80,
            0x7F7F,
            0xFF7F,
            0x7F80,
            0xFF80,
            0x7FC0,
            0x7F81,
            0xFFC1,
        ],
        7: [
            0,
            0x80000000,
            1,
            0x807FFFFF,
            0x3F800000,
            0x7F7FFFFF,
            0x7F800000,
            0xFF800000,
            0x7FC00000,
            0x7F800001,
            0x00800001,
        ],
        8: [
            0,
            1 << 63,
            1,
            0x7FEFFFFFFFFFFFFF,
            0x7FF0000000000000,
            0xFFF0000000000000,
            0x7FF8000000000001,
        ],
    }.get(
        data_type if data_type != 10 else 7,
        [0, 1, 2, (1 << 8 * SIZES[data_type]) - 1, 1 << (8 * SIZES[data_type] - 1)],
    )
    pairs = [(a, b) for a in edges for b in edges][: old.size]
    old[: len(pairs)] = [a for a, _ in pairs]
    new[: len(pairs)] = [b for _, b in pairs]
    return old.view(np.uint8), new.view(np.uint8)


def reduce_once(probe: Probe, op: int, data_type: int) -> np.ndarray:
    n = 128 // SIZES[data_type]
    old, new = reduce_operands(data_type)
    probe.memory[:512] = cp.asarray(old)
    spec = {
        "data_type": data_type,
        "dims": [n, 4],
        "strides": [128],
        "box": [n, 4],
        "coords": [0, 0],
        "smem": 0,
        "extent": 512,
    }
    return probe.store(spec, op, new)


def clipped_reduce_once(probe: Probe, i: int) -> np.ndarray:
    """Add a box whose rows end inside 16 bytes: what happens to the rest of the 16 bytes?"""
    data_type, inner = ((2, 5), (6, 3), (7, 7), (4, 1))[i]
    probe.memory[:512] = 0x11
    n = 32 // SIZES[data_type]
    spec = {"data_type": data_type, "dims": [inner, 3], "strides": [48], "box": [n, 4]}
    return probe.store(
        {**spec, "coords": [0, 1], "smem": 0, "extent": 256}, 1, np.full(128, 1, np.uint8)
    )


def record_reductions(facts: dict, arrays: dict) -> None:
    for i, got in enumerate(isolated([f"record.clipped_reduce_once(p, {i})" for i in range(4)])):
        assert not isinstance(got, str), got
        arrays[f"clipped_reduce{i}"] = got
    pairs = [(op, data_type) for op in range(1, 9) for data_type in REDUCE_TYPES]
    found = isolated([f"record.reduce_once(p, {op}, {data_type})" for op, data_type in pairs])
    facts["reduce"] = {}
    for (op, data_type), got in zip(pairs, found, strict=True):
        name = f"{OPS[op]}_{REDUCE_TYPES[data_type]}"
        facts["reduce"][name] = "illegal" if isinstance(got, str) else "ran"
        if not isinstance(got, str):
            arrays[f"reduce_{name}"] = got


def descriptor_cases() -> list[tuple[int, int, int, int, int, int]]:
    """(start, lbo, sbo, base offset, swizzle code, trans), bytes."""
    cases = []
    for trans in (0, 1):
        for code, width in ((1, 128), (2, 64), (3, 32)):
            for advance in (0, 32, 64, 96) if not trans else (0, 16 * width, 32, 128):
                cases.append(
                    (0x1000 + advance, 16 if not trans else 64 * width, 8 * width, 0, code, trans)
                )
            for row in (1, 2, 3, 5, 7):
                for base in {0, row, 1}:
                    cases.append(
                        (
                            0x1000 + 128 * row,
                            16 if not trans else 64 * width,
                            8 * width,
                            base,
                            code,
                            trans,
                        )
                    )
        cases += [
            (0x1000, 1024, 128, 0, 0, trans),
            (0x1010, 128, 256, 0, 0, trans),
            (0x1000, 128, 256, 3, 0, trans),
        ]
        rng = np.random.default_rng(25 + trans)
        for _ in range(60):
            start, lbo, sbo = (16 * int(v) for v in rng.integers(0, [512, 160, 160]))
            cases.append(
                (
                    start,
                    lbo,
                    sbo,
                    int(rng.integers(0, 8)) * int(rng.integers(0, 2)),
                    int(rng.integers(0, 4)),
                    trans,
                )
            )
    return cases


def record_descriptors(probe: Probe, facts: dict, arrays: dict) -> None:
    facts["descriptor"] = descriptor_cases()
    found_a, found_b = [], []
    for start, lbo, sbo, base, code, trans in facts["descriptor"]:
        desc = start >> 4 | lbo >> 4 << 16 | sbo >> 4 << 32 | base << 49 | code << 62
        b, a = cp.zeros((2, 16, 64), cp.float32), cp.zeros((2, 64, 16), cp.float32)
        probe.k["wgmma_b"](
            (1,), (128,), (np.uint64(desc), np.int32(trans), b), shared_mem=68 * 1024
        )
        probe.k["wgmma_a"](
            (1,), (128,), (np.uint64(desc), np.int32(trans), a), shared_mem=68 * 1024
        )
        b, a = b.get(), a.get()
        found_b.append((b[0] + 1024 * b[1]).T.astype(np.uint16))  # (n, k)
        found_a.append((a[0] + 1024 * a[1]).astype(np.uint16))  # (m, k)
    arrays["descriptor_a"], arrays["descriptor_b"] = np.array(found_a), np.array(found_b)


def record_replace(probe: Probe, facts: dict) -> None:
    """Compare tensormap.replace with a map that the driver encodes with the same change."""
    address = probe.memory.data.ptr
    base = {
        "data_type": 6,
        "dims": [64, 32, 8],
        "strides": [128, 4096],
        "box": [32, 8, 2],
        "element_strides": [1, 1, 1],
        "swizzle": 2,
    }

    def changed(key: str, index: int, value: int) -> dict:
        return {**base, key: [value if i == index else v for i, v in enumerate(base[key])]}

    cases = [("global_address", 0, address + 1024, {**base, "offset": 1024})]
    cases += [
        ("box_dim", i, v, changed("box", i, v)) for i, v in ((0, 16), (1, 9), (2, 5), (1, 256))
    ]
    cases += [("global_dim", i, v, changed("dims", i, v)) for i, v in ((0, 50), (1, 31), (2, 1000))]
    cases += [
        ("global_stride", i, v, changed("strides", i, v))
        for i, v in ((0, 256), (1, 8192), (1, 1 << 36))
    ]
    cases += [
        ("element_stride", i, v, changed("element_strides", i, v)) for i, v in ((1, 2), (2, 8))
    ]
    ptx_to_driver = [0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12]
    cases += [
        ("elemtype", 0, p, {**base, "data_type": d, "box": [16, 8, 2]})
        for p, d in enumerate(ptx_to_driver)
        if SIZES[d] == 2
    ]
    cases += [("swizzle_mode", 0, v, {**base, "swizzle": v}) for v in (2, 3)]
    cases += [("fill_mode", 0, v, {**base, "oob_fill": v}) for v in (0, 1)]
    rank2 = {
        **base,
        "dims": base["dims"][:2],
        "strides": base["strides"][:1],
        "box": base["box"][:2],
        "element_strides": [1, 1],
    }
    cases += [("rank", 0, 1, rank2), ("rank", 0, 2, base)]
    results = []
    for name, ordinal, value, target in cases:
        start = {**base, "box": [16, 8, 2]} if name == "elemtype" else base
        raw, want = encode(start, address)[1], encode(target, address)[1]
        out = cp.zeros(128, cp.uint8)
        probe.k["replace"](
            (1,),
            (128,),
            (
                cp.frombuffer(raw, cp.uint8),
                np.int32(FIELDS.index(name)),
                np.int32(ordinal),
                np.uint64(value),
                out,
            ),
            shared_mem=1024,
        )
        got = out.get().tobytes()
        shown = value - address if name == "global_address" else value
        diff = [[i, got[i], want[i]] for i in range(128) if got[i] != want[i]]
        results.append(
            {"field": name, "ordinal": ordinal, "value": shown, "same": got == want, "diff": diff}
        )
    facts["replace"] = results


def encode_cases() -> list[dict]:
    base = {"data_type": 6, "dims": [64, 32], "strides": [128], "box": [32, 8], "swizzle": 2}
    three = {**base, "dims": [64, 32, 8], "strides": [128, 4096], "box": [8, 8, 2], "swizzle": 0}
    cases = [base, three]
    cases += [{**base, "offset": v} for v in (8, 16, 32)]
    cases += [{**base, "dims": [v, 32]} for v in (0, 1, 2**32 - 1, 2**32, 2**32 + 1)]
    cases += [{**base, "strides": [v]} for v in (0, 8, 16, 64, 112, 136, 2**40 - 16, 2**40)]
    cases += [
        {**base, "box": b}
        for b in ([0, 8], [4, 8], [8, 8], [32, 0], [32, 256], [32, 257], [64, 8], [12, 8], [16, 1])
    ]
    cases += [
        {**base, "swizzle": s, "box": [b, 8]}
        for s in (0, 1, 2, 3, 4)
        for b in (8, 16, 24, 32, 64, 72, 128, 256)
    ]
    cases += [
        {**base, "element_strides": e}
        for e in ([0, 1], [1, 0], [1, 8], [1, 9], [2, 1], [8, 8], [9, 1])
    ]
    cases += [{**base, "data_type": t, "box": [16, 8], "oob_fill": 1} for t in range(13)]
    cases += [{**base, "data_type": t, "box": [16, 8], "swizzle": 0} for t in range(13)]
    cases += [
        {**base, "data_type": 0, "box": [256, 256], "swizzle": 0},
        {**base, "data_type": 4, "box": [256, 256], "swizzle": 0},
    ]
    cases += [{**three, "data_type": 0, "box": [256, 256, 256]}, {**base, "l2_promotion": 3}]
    cases += [{**base, "interleave": v, "swizzle": s} for v in (1, 2) for s in (0, 1)]
    cases += [
        {**three, "interleave": v, "swizzle": s, "box": [b, 8, 2]}
        for v in (1, 2)
        for s in (0, 1, 2, 3)
        for b in (4, 8, 16, 64)
    ]
    cases += [
        {**three, "interleave": 2, "swizzle": 1, "offset": 16},
        {**three, "interleave": 2, "swizzle": 1, "strides": [144, 8192]},
    ]
    cases += [
        {**three, "interleave": v, "swizzle": 1, "element_strides": e}
        for v in (1, 2)
        for e in ([2, 1, 1], [9, 1, 1], [1, 2, 1])
    ]
    cases += [{**three, "strides": s} for s in ([4096, 128], [0, 0], [128, 0], [128, 64])]
    cases += [
        {**three, "data_type": 0, "box": b}
        for b in (
            [256, 256, 2],
            [256, 256, 3],
            [256, 227, 4],
            [256, 228, 4],
            [256, 255, 4],
            [256, 256, 4],
        )
    ]
    cases += [
        {**three, "data_type": 0, "box": [256, 256, 8], "element_strides": [1, 8, 1]},
        {**three, "data_type": 0, "box": [256, 256, 4], "element_strides": [2, 1, 1]},
    ]
    cases += [{**three, "data_type": 0, "box": [256, 4, k]} for k in range(226, 257)]
    cases += [
        {"data_type": 0, "dims": [64], "strides": [], "box": [b], "swizzle": 0}
        for b in (15, 16, 64, 128, 256)
    ]
    cases += [
        {
            "data_type": 0,
            "dims": [16] * r,
            "strides": [16**i for i in range(1, r)],
            "box": [16] * r,
            "swizzle": 0,
        }
        for r in (2, 3, 4, 5)
    ]
    return cases


def main() -> None:
    out = Path(sys.argv[1])
    probe = Probe()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    smi = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    facts: dict = {
        "device": name,
        "driver": subprocess.run(smi, capture_output=True, text=True).stdout.strip(),
        "probe_sha256": hashlib.sha256((HERE / "probe.cu").read_bytes()).hexdigest(),
        "command": "python tests/silicon/layout/record.py OUT_DIR",
    }
    arrays: dict = {}
    facts["encode"] = [{**c, "error": encode(c, probe.memory.data.ptr)[0]} for c in encode_cases()]
    steps = [
        lambda: record_descriptors(probe, facts, arrays),
        lambda: record_loads(facts, arrays),
        lambda: record_stores(facts, arrays),
        lambda: record_replace(probe, facts),
        lambda: record_reductions(facts, arrays),
    ]
    for number, step in enumerate(steps):
        step()
        print(number, "done", flush=True)
    (out / "layout.json").write_text(json.dumps(facts))
    np.savez_compressed(out / "layout.npz", **arrays)


if __name__ == "__main__":
    main()
