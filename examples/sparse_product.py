"""A matrix pruned to two of four elements, multiplied by `mma.sp`: half the storage, half the instructions, the same bits.

Of each four elements of a row of A two are stored; two bits of metadata say where each stood.  An instruction sums the
products of what is stored in the way that it sums dense ones, so that zeros change nothing: the reference, which knows
nothing of metadata, multiplies the pruned matrix with its zeros.
"""

import numpy as np

import hopsim as hs
from hopsim.layout.fragments import mma_a_to_registers, mma_b_to_registers, registers_to_mma_c
from hopsim.layout.sparse import metadata_map
from hopsim.reference.gemm import gemm

M, N, K, STEP = 16, 8, 256, 32
"""Of the problem, and of K in one m16n8k32."""
STEPS = K // STEP

PRODUCT = """
    ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%pa + {at_a}];
    ld.global.v4.b32 {{%b0, %b1, %b2, %b3}}, [%pb + {at_a}];
    ld.global.b32 %e, [%pe + {at_e}];
    mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32
        {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1, %b2, %b3}}, {{%d0, %d1, %d2, %d3}}, %e, 0;
"""
PTX = f"""
.version 8.7
.target sm_90a
.address_size 64
.visible .entry sparse(.param .u64 a, .param .u64 b, .param .u64 e, .param .u64 d)
{{
    .reg .b32 %a<4>, %b<4>, %e, %lane;
    .reg .f32 %d<4>;
    .reg .b64 %pa, %pb, %pe, %pd;
    ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pe, [e]; ld.param.u64 %pd, [d];
    mov.u32 %lane, %tid.x;
    mad.wide.u32 %pa, %lane, 16, %pa; mad.wide.u32 %pb, %lane, 16, %pb;
    mad.wide.u32 %pe, %lane, 4, %pe; mad.wide.u32 %pd, %lane, 16, %pd;
    mov.f32 %d0, 0.0; mov.f32 %d1, 0.0; mov.f32 %d2, 0.0; mov.f32 %d3, 0.0;
{"".join(PRODUCT.format(at_a=step * 512, at_e=step * 128) for step in range(STEPS))}
    st.global.v4.f32 [%pd], {{%d0, %d1, %d2, %d3}};
    ret;
}}
"""


def prune(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A with the two smaller of each four elements zero, what is stored of it, and where it stood: (M, K / 4, 2)."""
    chunks = a.reshape(M, K // 4, 4)
    places = np.sort(np.argsort(-np.abs(chunks), axis=2)[:, :, :2], axis=2)
    stored = np.take_along_axis(chunks, places, axis=2)
    pruned = np.zeros_like(chunks)
    np.put_along_axis(pruned, places, stored, axis=2)
    return pruned.reshape(M, K), stored.reshape(M, K // 2), places


def metadata(places: np.ndarray) -> np.ndarray:
    """Return the word of each lane for each step: (steps, 32)."""
    where = metadata_map("f16", STEP)
    nibbles = (places[:, :, 0] | places[:, :, 1] << 2).reshape(M, STEPS, STEP // 4)
    words = np.zeros((STEPS, 32), np.uint32)
    for step in range(STEPS):
        shifted = nibbles[:, step].astype(np.uint32) << (4 * where.nibbles).astype(np.uint32)
        np.bitwise_or.at(words[step], where.lanes, shifted)
    return words


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, K)).astype(np.float16) for rows in (M, N))
    pruned, stored, places = prune(a)
    bits_a, bits_b = stored.view(np.uint16), b.view(np.uint16)
    fragments_a = [mma_a_to_registers(part).T for part in np.split(bits_a, STEPS, axis=1)]
    fragments_b = [mma_b_to_registers(part).T for part in np.split(bits_b, STEPS, axis=1)]
    gpu = hs.Gpu("h100-sxm")
    d = gpu.array(np.zeros((32, 4), np.float32))
    given = [gpu.array(np.stack(parts)) for parts in (fragments_a, fragments_b)]
    result = gpu.launch(
        hs.loads(PTX)["sparse"], 1, 32, args=[*given, gpu.array(metadata(places)), d]
    )
    got = registers_to_mma_c(d.numpy().T.view(np.uint32), 16, 32)
    expected = gemm(pruned, b, k_step=STEP).view(np.uint32)
    print(
        f"A has {a.size:,} elements, of which {stored.size:,} are stored, and {places.size * 2:,} bits of metadata"
    )
    print(
        f"verdict {result.verdict}; elements with the bits of the reference: {np.mean(got == expected):.0%}"
    )
    print(
        f"{STEPS} products instead of {2 * STEPS}; metadata of lane 0: {metadata(places)[0, 0]:#010x}"
    )


if __name__ == "__main__":
    main()
