"""Numbers as people read them: grouped digits, binary sizes, shares.

>>> size(1_300_000), share(0.4531), grouped(12345)
('1.24 MiB', '45.3 %', '12,345')
"""

from __future__ import annotations

from collections.abc import Iterable

_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def grouped(number: float) -> str:
    """Return a whole number with its digits in groups of three."""
    return f"{round(number):,}"


def size(count_bytes: float) -> str:
    """Return a number of bytes with three digits and a binary unit."""
    for scale, unit in _SIZES:
        if count_bytes >= scale:
            value = count_bytes / scale
            digits = max(0, 2 - (value >= 10) - (value >= 100))
            return f"{value:.{digits}f} {unit}"
    return f"{count_bytes:.0f} B"


def share(part: float) -> str:
    """Return a part of one in percent."""
    return f"{100 * part:.1f} %"


def signed(number: float, decimals: int = 0) -> str:
    """Return a difference with its sign; what rounds to 0 has none.

    >>> signed(1234.6), signed(-0.04, 1), signed(0.2)
    ('+1,235', '0.0', '0')
    """
    text = f"{number:+,.{decimals}f}"
    return text if any(digit in text for digit in "123456789") else text[1:]


def clock(frequency_hz: float) -> str:
    """Return a clock in GHz, to the 10 MHz: it is a model of what load leaves of it."""
    return f"{frequency_hz / 1e9:.2f} GHz"


def triple(shape: tuple[int, int, int]) -> str:
    """Return a launch shape without the ones at its end: `8 x 4`."""
    last = max((axis for axis, extent in enumerate(shape) if extent != 1), default=0)
    return " x ".join(grouped(extent) for extent in shape[: last + 1])


def cta_name(cta: tuple[int, int, int]) -> str:
    """Return a CTA by its coordinates: `cta (3,0,0)`."""
    return f"cta ({cta[0]},{cta[1]},{cta[2]})"


def ranges(numbers: Iterable[int]) -> str:
    """Return sorted numbers as ranges: `0-3, 8`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def lanes_of(mask: int) -> str:
    """Return the lanes of a bit mask as ranges."""
    return ranges(lane for lane in range(32) if mask >> lane & 1)


def plural(count: int, word: str) -> str:
    """Return `1 warp`, `12 warps`."""
    return f"{grouped(count)} {word}{'' if count == 1 else 's'}"
