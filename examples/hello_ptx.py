"""Hello, PTX: a vector addition from text, launched on a simulated H100.

Each thread adds one element.  The last CTA has threads that own none: they leave early.
"""

import numpy as np

import hopsim as hs

PTX = """
.version 8.7
.target sm_90a
.address_size 64

.visible .entry add_vectors(.param .u64 x, .param .u64 y, .param .u64 z, .param .u32 n)
{
    .reg .pred %past_end;
    .reg .b32 %cta, %threads, %thread, %i, %n;
    .reg .b64 %x, %y, %z, %offset;
    .reg .f32 %a, %b, %sum;

    // i = blockIdx.x * blockDim.x + threadIdx.x
    mov.u32         %cta, %ctaid.x;
    mov.u32         %threads, %ntid.x;
    mov.u32         %thread, %tid.x;
    mad.lo.s32      %i, %cta, %threads, %thread;
    ld.param.u32    %n, [n];
    setp.ge.u32     %past_end, %i, %n;
    @%past_end ret;

    ld.param.u64    %x, [x];
    ld.param.u64    %y, [y];
    ld.param.u64    %z, [z];
    mul.wide.u32    %offset, %i, 4;
    add.s64         %x, %x, %offset;
    add.s64         %y, %y, %offset;
    add.s64         %z, %z, %offset;
    ld.global.f32   %a, [%x];
    ld.global.f32   %b, [%y];
    add.f32         %sum, %a, %b;
    st.global.f32   [%z], %sum;
    ret;
}
"""


def main() -> None:
    kernel = hs.loads(PTX, "add_vectors.ptx")["add_vectors"]
    print("kernel      ", kernel.name)
    print("parameters  ", ", ".join(parameter.name for parameter in kernel.params))
    print("not modelled", kernel.unsupported)

    n = 1000
    gpu = hs.Gpu("h100-sxm")
    x = gpu.array(np.arange(n, dtype=np.float32))
    y = gpu.array(np.full(n, 0.5, np.float32))
    z = gpu.empty(n, np.float32)
    result = gpu.launch(kernel, grid=8, block=128, args=[x, y, z, np.uint32(n)])

    print("verdict     ", result.verdict)
    print("z           ", z.numpy()[:4], "...", z.numpy()[-1])

    # A mistake is told before anything runs, with what to do about it.
    try:
        gpu.launch(kernel, grid=8, block=128, args=[x, y, z, n])
    except hs.LaunchError as error:
        print(f"\n{error}")


if __name__ == "__main__":
    main()
