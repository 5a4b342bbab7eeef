"""What a convolution computes, and the GEMM that it is.

y[n, p, q, k] = sum over r, s, c of x[n, p * stride - padding + r * dilation, q * ... + s * dilation, c] w[k, r, s, c]:
activations lie as images by H by W by channels, filters as filters by R by S by channels.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.problem import element_type

DTYPES = ("bf16", "fp16")
_MOST_OFFSET = 255
"""Of a pixel of the filter: the instruction has a byte for it. Source: machine code of ptxas 13.0."""
_MOST_STEP = 8
"""Of an element stride. Source: CUDA driver API 13.0, cuTensorMapEncodeIm2col."""
_CORNERS = range(-128, 128)
"""Of an im2col map of rank 4. Source: CUDA driver API 13.0, cuTensorMapEncodeIm2col."""


@dataclass(frozen=True, slots=True)
class ConvProblem:
    """One two-dimensional convolution.

    Args:
        images, height, width, channels: of the activations.
        filters: channels of the output.
        extent: of a filter, along H and W.
        stride, padding, dilation: along H and W.
        dtype: bf16 or fp16, of activations, filters and output; sums are f32.

    Raises: LaunchError: a size is not positive, the filter is larger than the padded image, a type is not offered, or
        TMA cannot address it.
    """

    images: int
    height: int
    width: int
    channels: int
    filters: int
    extent: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    dtype: str = "bf16"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise _refuse(f"dtype must be {' or '.join(DTYPES)}, got {self.dtype!r}")
        for name in ("images", "height", "width", "channels", "filters"):
            size = getattr(self, name)
            if size < 1:
                raise _refuse(f"{name} must be at least 1, got {size}")
        for name in ("channels", "filters"):
            size = getattr(self, name)
            if size * element_type(self.dtype).size % 16:
                raise _refuse(
                    f"{name} must fill a multiple of 16 bytes, got {size} of {self.dtype}",
                    hint="pad them to a multiple of 8",
                )
        for axis, name in enumerate("HW"):
            self._check_axis(axis, name)

    def _check_axis(self, axis: int, name: str) -> None:
        extent, stride, padding, dilation = (
            one[axis] for one in (self.extent, self.stride, self.padding, self.dilation)
        )
        if min(extent, dilation) < 1 or padding < 0:
            raise _refuse(
                f"along {name} extent and dilation must be at least 1 and padding at least 0, "
                f"got {extent}, {dilation}, {padding}"
            )
        if not 1 <= stride <= _MOST_STEP:
            raise _refuse(f"stride along {name} must be 1 to {_MOST_STEP}, got {stride}")
        reach = (extent - 1) * dilation
        if reach > _MOST_OFFSET or -padding not in _CORNERS or padding - reach not in _CORNERS:
            raise _refuse(
                f"a filter that reaches over {reach + 1} pixels along {name} with a padding of {padding} does not fit an "
                f"im2col map: expected a reach of at most {_MOST_OFFSET + 1}, and corners from -128 to 127"
            )
        size = (self.height, self.width)[axis]
        if size + 2 * padding <= reach:
            raise _refuse(
                f"a filter that reaches over {reach + 1} pixels along {name} is larger than an image of {size} with a "
                f"padding of {padding}"
            )

    @property
    def out_shape(self) -> tuple[int, int, int, int]:
        """Shape of the output: images, P, Q, filters."""
        p, q = (
            (size + 2 * padding - (extent - 1) * dilation - 1) // stride + 1
            for size, padding, extent, dilation, stride in zip(
                (self.height, self.width), self.padding, self.extent, self.dilation, self.stride, strict=True
            )
        )  # fmt: skip
        return self.images, p, q, self.filters

    @property
    def x_shape(self) -> tuple[int, int, int, int]:
        """Shape of the activations."""
        return self.images, self.height, self.width, self.channels

    @property
    def w_shape(self) -> tuple[int, int, int, int]:
        """Shape of the filters."""
        return self.filters, *self.extent, self.channels

    @property
    def pixels(self) -> int:
        """Rows of the GEMM: pixels of the output."""
        images, p, q, _ = self.out_shape
        return images * p * q

    @property
    def taps(self) -> int:
        """Pixels of a filter."""
        return self.extent[0] * self.extent[1]

    @property
    def flops(self) -> int:
        """Multiplications and additions, those with padding too."""
        return 2 * self.pixels * self.filters * self.taps * self.channels

    @property
    def lower_corner(self) -> tuple[int, int]:
        """Of the im2col map, W first."""
        return -self.padding[1], -self.padding[0]

    @property
    def upper_corner(self) -> tuple[int, int]:
        """Of the im2col map, W first."""
        h, w = (
            padding - (extent - 1) * dilation
            for padding, extent, dilation in zip(
                self.padding, self.extent, self.dilation, strict=True
            )
        )
        return w, h


def _refuse(what: str, hint: str = "") -> LaunchError:
    return LaunchError(what, where="convolution", hint=hint)
