"""What a launch says of its arguments, in the words of a launch file: who writes TOML has no numpy scalars.

>>> spelt_in_toml("np.float32(x), or x.tobytes() for the bits as they are")
'{ float32 = 1 }'
>>> spelt_in_toml("grid=(8, 8) or grid=64")
'grid = [8, 8] or grid = 64'
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from hopsim.errors import LaunchError

_SPELT: Final = (
    (r"np\.(u?int\d+|float\d+)\(x\), or x\.tobytes\(\) for the bits as they are", r"{ \1 = 1 }"),
    (r"pass a numpy scalar such as np\.(\w+)\((\w+)\)", r"{ \1 = 1 }"),
    (r"hs\.TensorMap\(x, box=\((\d+), (\d+)\)\)", r'{ tensor_map = "x", box = [\1, \2] }'),
    (
        r"bytes, or hs\.ParamBytes\(bytes\((\d+)\), pointers=\{0: x\}\)",
        r'{ kind = "struct", size_bytes = \1, parts = [{ kind = "array", offset = 0, array = "x" }] }',
    ),
    (r"\b(\w+)=\((\d+), (\d+)\)", r"\1 = [\2, \3]"),
    (r"\b(\w+)=(\d+)\b", r"\1 = \2"),
)


def spelt_in_toml(hint: str) -> str:
    """Return what to try as a launch file has it."""
    for python, toml in _SPELT:
        hint = re.sub(python, toml, hint)
    return hint


@contextmanager
def of_launch_file() -> Generator[None]:
    """Around a launch that a file describes: its errors advise what the file can hold."""
    try:
        yield
    except LaunchError as error:
        raise type(error)(
            error.what, where=error.where, hint=spelt_in_toml(error.hint), source=error.source
        ) from None
