"""printf in a kernel: what lane 0 of each warp holds at each step of a sum, and an assertion that fails.

nvcc makes such calls of `printf` and `assert`; here they are written out.  The last launch gets a value that the kernel
does not allow.
"""

import numpy as np

import hopsim as hs

STEP = "warp %d, offset %2d: %5.1f\n"


def chars(text: str) -> str:
    """Return the declaration of a string's bytes."""
    data = [*text.encode(), 0]
    return f"[{len(data)}] = {{{', '.join(map(str, data))}}}"


PTX = f"""
.version 8.7
.target sm_90a
.address_size 64

.extern .func (.param .b32 count) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line,
                           .param .b64 function, .param .b64 size);
.global .align 1 .b8 step_text{chars(STEP)};
.global .align 1 .b8 condition{chars("value < 100")};
.global .align 1 .b8 file{chars("sum.cu")};
.global .align 1 .b8 function{chars("void sum(const float *)")};

.func say(.param .b32 warp, .param .b32 offset, .param .f32 value)
{{
    .local .align 8 .b8 packed[16];
    .reg .b32 %r;
    .reg .f32 %f;
    .reg .f64 %d;
    .reg .b64 %at, %text;
    ld.param.b32    %r, [warp];
    st.local.b32    [packed], %r;
    ld.param.b32    %r, [offset];
    st.local.b32    [packed+4], %r;
    ld.param.f32    %f, [value];
    cvt.f64.f32     %d, %f;
    st.local.f64    [packed+8], %d;
    mov.b64         %at, packed;
    cvta.local.u64  %at, %at;
    mov.b64         %text, step_text;
    call (_), vprintf, (%text, %at);
}}

.visible .entry sum(.param .u64 x)
{{
    .reg .pred %first, %good, %more;
    .reg .b32 %thread, %lane, %warp, %offset, %bits;
    .reg .b64 %x, %at, %a, %b, %c;
    .reg .f32 %value, %other;
    mov.u32         %thread, %tid.x;
    shr.u32         %warp, %thread, 5;
    and.b32         %lane, %thread, 31;
    setp.eq.u32     %first, %lane, 0;
    ld.param.u64    %x, [x];
    mul.wide.u32    %at, %thread, 4;
    add.u64         %x, %x, %at;
    ld.global.f32   %value, [%x];

    setp.lt.f32     %good, %value, 0f42C80000;
    mov.b64         %a, condition;
    mov.b64         %b, file;
    mov.b64         %c, function;
    @!%good call __assertfail, (%a, %b, 7, %c, 1);

    mov.b32         %offset, 16;
AGAIN:
    mov.b32         %bits, %value;
    shfl.sync.bfly.b32 %bits, %bits, %offset, 31, -1;
    mov.b32         %other, %bits;
    add.f32         %value, %value, %other;
    @%first call    say, (%warp, %offset, %value);
    shr.u32         %offset, %offset, 1;
    setp.ne.u32     %more, %offset, 0;
    @%more bra      AGAIN;
    ret;
}}
"""


def main() -> None:
    kernel = hs.loads(PTX, "sum.ptx")["sum"]
    gpu = hs.Gpu()
    x = np.arange(64, dtype=np.float32) / 2
    result = gpu.launch(kernel, grid=1, block=64, args=[gpu.array(x)])
    print(f"verdict: {result.verdict}")
    print(result.printed)

    x[40] = 100
    result = gpu.launch(kernel, grid=1, block=64, args=[gpu.array(x)])
    print(f"verdict: {result.verdict}")
    print(result.printed, end="")


if __name__ == "__main__":
    main()
