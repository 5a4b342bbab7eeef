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


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file or directory"), (b"\xff", "it is no text")]
)
def test_what_cannot_be_read_is_an_error(content: bytes | None, why: str, tmp_path: Path) -> None:
    file = tmp_path / "k.ptx"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(hs.PtxError, match=f"cannot read {file}: {why}"):
        hs.load(file)
