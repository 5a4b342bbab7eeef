"""What `hopsim.load` says of what is no file of PTX."""

from __future__ import annotations

from pathlib import Path

import pytest

import hopsim as hs

TEXT = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n"


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(TEXT)
    assert list(hs.load(file)) == list(hs.load(str(file))) == list(hs.loads(TEXT)) == ["k"]


def test_text_in_place_of_a_path_is_named_in_one_line() -> None:
    with pytest.raises(hs.PtxError, match="expected the path of a file, got PTX text") as caught:
        hs.load(TEXT)
    assert "hopsim.loads() takes text" in str(caught.value)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "k.ptx"
    with pytest.raises(hs.PtxError, match=f"cannot read {file}: No such file or directory"):
        hs.load(file)


@pytest.mark.parametrize(
    ("content", "place", "what", "hint"),
    [
        (b"\x7fELF\x02\x01\x01\0", "", "got an ELF file (a cubin, an object or a program)", "cuobjdump -ptx"),
        (b"\x50\xed\x55\xba\x01\0", "", "got a fat binary of CUDA", "cuobjdump -ptx"),
        (TEXT.encode() + b"\0", "", "got a binary file", "nvcc -arch=sm_90a -ptx"),
        (TEXT.encode("utf-16"), "", "got UTF-16 text", "save it as ASCII or UTF-8"),
        (b".version 8.7\n// caf\xe9\n", ":2:7", "got the byte 0xe9, which is not UTF-8", "save it as ASCII or UTF-8"),
        (b"\xe9", ":1:1", "got the byte 0xe9, which is not UTF-8", "save it as ASCII or UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_told(
    content: bytes, place: str, what: str, hint: str, tmp_path: Path
) -> None:
    file = tmp_path / "k.ptx"
    file.write_bytes(content)
    with pytest.raises(hs.PtxError) as caught:
        hs.load(file)
    first, second = str(caught.value).splitlines()
    assert first == f"{file}{place}: expected PTX text, {what}"
    assert hint in second


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_of_other_systems_keep_the_lines(end: str, tmp_path: Path) -> None:
    file = tmp_path / "k.ptx"
    text = f"// a comment\n{TEXT}"
    file.write_bytes(text.replace("\n", end).encode())
    assert list(hs.load(file)) == ["k"]
    file.write_bytes((text + "wrong").replace("\n", end).encode())
    with pytest.raises(hs.PtxError) as caught:
        hs.load(file)
    assert caught.value.line == (text + "wrong").count("\n") + 1
