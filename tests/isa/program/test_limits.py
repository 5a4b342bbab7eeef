"""What a kernel may declare in each state space: what is at the limit is taken, a byte or word more is not."""

from __future__ import annotations

import pytest

import hopsim as hs

TOO_MANY = [
    ("8.7", "", "", ".shared .b8 a[{}];", 232_448, 1, "'k' declares too much shared memory"),
    ("8.7", ".shared .b8 b[232440];", "", ".shared .b8 a[{}]; mov.u32 %r0, b;", 8, 1, "'k' declares too much shared memory"),
    ("8.7", "", ".param .b8 p[{}]", "", 32_764, 4, "'k' has too many parameters"),
    ("8.1", "", ".param .b8 p[{}]", "", 32_764, 4, "'k' has too many parameters"),
    ("8.0", "", ".param .b8 p[{}]", "", 4_352, 4, "'k' has too many parameters"),
    ("8.7", ".const .b8 c[{}]; .const .u32 d;", "", "", 65_532, 4, "the file has too many constants"),
    ("8.7", ".func f() {{ .const .b8 c[{}]; ret; }}", "", "{{ .const .u32 d; }}", 65_532, 4, "the file has too many constants"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "module", "params", "body", "most", "step", "what"), TOO_MANY)
def test_the_most_that_a_space_takes(
    version: str, module: str, params: str, body: str, most: int, step: int, what: str
) -> None:
    """Source: ptxas 13.0, which takes the first and refuses the second."""

    def kernel(size: int) -> hs.Kernel:
        head = f".version {version}\n.target sm_90a\n.address_size 64\n{module.format(size)}\n"
        text = f"{head}.entry k({params.format(size)})\n{{ .reg .b32 %r0; {body.format(size)} ret; }}\n"
        return hs.loads(text)["k"]

    assert kernel(most).errors == []
    (error,) = kernel(most + step).errors
    assert error.what.startswith(f"{what}: ")
    with pytest.raises(hs.PtxError, match=what):
        assert kernel(most + step).unsupported
