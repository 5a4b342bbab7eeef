"""What TMA brings for each place of a 3x3 filter: the pixels of an image of 3 x 4, moved, with zeros where the padding is.

The tensor map has the window of the filter's first pixel (padding: from -1 to the last one less 1), the instruction the
place in the filter as offsets. Twelve pixels, one for each pixel of the output, come by one instruction.
"""

import numpy as np

import hopsim as hs

HEIGHT, WIDTH, CHANNELS = 3, 4, 8
PIXELS = HEIGHT * WIDTH

PTX = f"""
.version 8.7
.target sm_90a
.address_size 64
.visible .entry column(.param .align 64 .b8 map[128], .param .u64 out, .param .u16 across, .param .u16 down)
{{
    .shared .align 128 .b8 tile[{16 * PIXELS}];
    .shared .align 8 .b64 bar;
    .reg .b16 %across, %down;
    .reg .b32 %tile, %bar, %lane, %first;
    .reg .b64 %map, %out;
    .reg .pred %leads, %done, %is_pixel;
    ld.param.u64 %out, [out]; ld.param.u16 %across, [across]; ld.param.u16 %down, [down];
    mov.b64 %map, map; cvta.param.u64 %map, %map;
    mov.u32 %tile, tile; mov.u32 %bar, bar; mov.u32 %lane, %tid.x;
    setp.eq.u32 %leads, %lane, 0;
    @!%leads bra SKIP;
    mbarrier.init.shared::cta.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {16 * PIXELS};
    cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
        [%tile], [%map, {{0, -1, -1, 0}}], [%bar], {{%across, %down}};
SKIP:
    bar.warp.sync -1;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0;
    @!%done bra WAIT;
    setp.lt.u32 %is_pixel, %lane, {PIXELS};
    @!%is_pixel bra END;
    mad.lo.u32 %tile, %lane, 16, %tile;
    ld.shared.u16 %across, [%tile];
    mad.wide.u32 %out, %lane, 2, %out;
    st.global.u16 [%out], %across;
END:
    ret;
}}
"""


def main() -> None:
    numbers = np.arange(1, PIXELS + 1, dtype=np.uint16)
    image = np.repeat(numbers, CHANNELS).reshape(1, HEIGHT, WIDTH, CHANNELS)
    gpu = hs.Gpu("h100-sxm")
    kernel = hs.loads(PTX)["column"]
    tensor_map = hs.TensorMap(
        gpu.array(image), box=(CHANNELS, PIXELS), lower_corner=(-1, -1), upper_corner=(-1, -1)
    )
    brought = np.zeros((3, 3, HEIGHT, WIDTH), np.uint16)
    for down in range(3):
        for across in range(3):
            out = gpu.array(np.zeros((HEIGHT, WIDTH), np.uint16))
            args = [tensor_map, out, np.uint16(across), np.uint16(down)]
            result = gpu.launch(kernel, 1, 32, args=args)
            assert result.verdict == "clean", result.hazards
            brought[down, across] = out.numpy()
    print(
        f"an image of {HEIGHT} x {WIDTH} pixels, under each place of a 3x3 filter with a padding of 1"
    )
    for row in brought:
        print()
        for line in range(HEIGHT):
            print("   ".join("".join(f"{pixel:4}" for pixel in place[line]) for place in row))
    padded = np.pad(image[0, :, :, 0], 1)
    moved = np.lib.stride_tricks.sliding_window_view(padded, (HEIGHT, WIDTH))
    print("\nnumpy says", "the same" if np.array_equal(brought, moved) else "something else")


if __name__ == "__main__":
    main()
