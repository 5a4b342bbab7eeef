"""`hopsim calibrate`: from recordings to numbers of a configuration, each with its recording as source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hopsim.cli.options import GpuOption, JsonOption
from hopsim.errors import ConfigError

if TYPE_CHECKING:
    from hopsim.kernels.micro.calibration import Recordings

AGAIN: Final = "on an H100: hopsim record tests/silicon --part micro --part gemm"


def calibrate(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the recordings are.")
    ] = Path("tests/silicon"),
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write a configuration that extends the other one."
        ),
    ] = None,
    gpu: GpuOption = "h100-sxm",
    json_file: JsonOption = None,
) -> None:
    """Derive what microbenchmarks decide, and show where it differs from a configuration."""
    from hopsim.cli.output import Output, check_suffix, check_targets, write_file
    from hopsim.config import load
    from hopsim.kernels.micro.calibration import derive
    from hopsim.report.columns import LEAST_SENTENCE, Column, Columns, Kind, Words

    output = Output(json_file)
    check_targets((out, "--out"))
    if out is not None:
        # By another name it would be taken for that of a configuration.
        check_suffix(out, "--out", (".toml",))
    recordings = _read(folder)
    try:
        derived = derive(recordings)
    except KeyError as missing:
        raise ConfigError(
            f"{folder} has no recording {missing.args[0]!r}",
            hint=AGAIN,
        ) from None
    except ZeroDivisionError:
        raise ConfigError(
            f"{folder} has recordings that should differ and do not",
            hint=AGAIN,
        ) from None
    held = load(gpu)
    known = {fact.key: fact for fact in held.facts}
    changed = load(gpu, {key: text for key, (text, _) in derived.items() if key in known})
    values = {fact.key: fact.value for fact in changed.facts}
    numbers = ("configuration", "recorded", "difference")
    table = Columns(
        Column("key"),
        *(Column(name, Kind.NUMBER, is_left=True) for name in numbers),
        Column("from", Kind.NOTE),
        least_note=LEAST_SENTENCE,
    )
    rows: list[dict[str, Any]] = []
    for key, (text, source) in derived.items():
        old = known[key].value if key in known else None
        row: dict[str, Any] = {"key": key, "recorded": text, "source": source}
        if old is None:
            row["note"] = "not a key of this configuration"
            table.add_row(key, "-", text, Words(row["note"]), source)
        else:
            new = values[key]
            row |= {
                "configured": known[key].text,
                "difference_percent": 100 * (new - old) / old if old else None,
            }
            difference = (
                f"{100 * (new - old) / old:+.1f} %" if old else ("" if new == old else f"{new:g}")
            )
            table.add_row(key, str(known[key].text), text, difference, source)
        rows.append(row)
    output.show(table)
    if out is not None:
        kept = {key: one for key, one in derived.items() if key in known}
        with output.saving():
            write_file(out, _toml(held.name, kept), "--out")
            load(out)
    output.finish({"command": "calibrate", "config": held.name, "values": rows}, 0)


def _read(folder: Path) -> Recordings:
    from hopsim.kernels.micro.calibration import EMPTIES, MICRO, Recordings
    from hopsim.kernels.recordings import read_recording

    found: list[list[dict[str, Any]]] = []
    for name, kind in (("micro.json", MICRO), ("judging/empty_kernel.json", EMPTIES)):
        file = folder / name
        if not file.exists():
            raise ConfigError(f"there is no {file}", hint="tests/silicon of a checkout")
        found.append(read_recording(file, kind))
    return Recordings(*found)


def _toml(base: str, derived: dict[str, tuple[str, str]]) -> str:
    lines = [
        f"# What the microbenchmarks of an H100 SXM decide; made by hopsim calibrate from {base}'s recordings.",
        "", "hopsim_config = 1", f"extends = {json.dumps(base)}", "",
    ]  # fmt: skip
    for key, (text, source) in derived.items():
        lines.append(f"{key} = {{ value = {json.dumps(text)}, source = {json.dumps(source)} }}")
    return "\n".join(lines) + "\n"
