"""The hardware configuration: what loads, what is refused and how that reads, what round trips."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from hopsim import config
from hopsim.config import HardwareConfig
from hopsim.config.quantities import ISSUE_UNITS
from hopsim.errors import ConfigError

NUMBERS = [name for name in HardwareConfig.model_fields if name not in ("name", "facts")]


def numbers(loaded: HardwareConfig) -> dict[str, object]:
    return {name: getattr(loaded, name).model_dump() for name in NUMBERS}


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def message(name: str | Path, overrides: dict[str, config.Override] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        config.load(name, overrides)
    return str(caught.value)


def test_the_chips_that_come_along() -> None:
    assert config.names() == ("h100-sxm", "h200-sxm")


@pytest.mark.parametrize("name", config.names())
def test_each_chip_is_complete_and_sourced(name: str) -> None:
    loaded = config.load(name)
    assert loaded.name == name
    assert [fact.key for fact in loaded.facts if not fact.source] == ["device.name"]
    assert len({fact.key for fact in loaded.facts}) == len(loaded.facts)


def test_values_are_plain_numbers_in_the_unit_of_their_name() -> None:
    h100 = config.load("h100-sxm")
    assert h100.device.shared_per_cta_max_bytes == 232448
    assert h100.device.clock_hz == 1.98e9
    assert h100.smem.latency_cycles == 23
    assert type(h100.smem.latency_cycles) is int
    assert h100.dram.bandwidth_bytes_per_clk == 3.35e12 / 1.98e9
    assert h100.tensor.flop_per_clk["bf16"] == 4096.0
    assert h100.issue.latency_cycles["alu"] == 4
    assert h100.tma.rank_extra_cycles == (0, 0, 47, 47, 47)


def test_peak_rate_of_the_chip_is_the_published_one() -> None:
    h100 = config.load("h100-sxm")
    # NVIDIA H100 data sheet: 989.4 TFLOP/s dense bf16, at the boost clock of 1830 MHz.
    peak = h100.tensor.flop_per_clk["bf16"] * h100.device.sm_count * 1830e6
    assert math.isclose(peak, 989.4e12, rel_tol=1e-4)


def test_h200_differs_in_what_was_recorded_of_it() -> None:
    h100, h200 = numbers(config.load("h100-sxm")), numbers(config.load("h200-sxm"))
    assert [name for name in NUMBERS if h100[name] != h200[name]] == [
        "device",
        "fence",
        "l2",
        "dram",
        "launch",
    ]
    h100["device"], h200["device"] = (
        {**dict(d), "name": ""} for d in (h100["device"], h200["device"])
    )  # type: ignore[call-overload]
    assert h100["device"] == h200["device"]


def test_units_of_the_instruction_set_all_have_numbers() -> None:
    from hopsim.isa.forms.form import UNITS

    # What ptxas makes of some instructions has numbers of its own.
    assert set(ISSUE_UNITS) - set(UNITS) == {"imad_wide", "uniform"}
    assert set(UNITS) <= set(ISSUE_UNITS)


@pytest.mark.parametrize("name", config.names())
@pytest.mark.parametrize("overrides", [{}, {"dram.bandwidth": "5TB/s", "device.clock": "1.5GHz"}])
def test_dump_loads_to_the_same_numbers(
    name: str, overrides: dict[str, config.Override], tmp_path: Path
) -> None:
    loaded = config.load(name, overrides)
    again = config.load(write(tmp_path, config.dump(loaded)))
    assert numbers(again) == numbers(loaded)
    assert config.dump(again) == config.dump(loaded)


def test_a_time_follows_the_clock_and_a_number_of_cycles_does_not() -> None:
    slow = config.load("h100-sxm", {"device.clock": "1GHz", "smem.latency": "30ns"})
    assert slow.smem.latency_cycles == 30
    assert slow.dram.bandwidth_bytes_per_clk == 3350.0
    assert (
        slow.mbarrier.arrive_latency_cycles
        == config.load("h100-sxm").mbarrier.arrive_latency_cycles
    )


def test_an_override_replaces_value_and_source() -> None:
    changed = config.load("h100-sxm", {"dram.bandwidth": "4.8TB/s"})
    fact = next(fact for fact in changed.facts if fact.key == "dram.bandwidth")
    assert (fact.text, fact.source, fact.guess) == ("4.8TB/s", "override", False)
    assert fact.value == changed.dram.bandwidth_bytes_per_clk == 4.8e12 / 1.98e9


@pytest.mark.parametrize(
    ("overrides", "what"),
    [(["a"], "expected values by key, got ['a']"), ({1: 2}, "unknown key '1'")],
)
def test_overrides_are_values_by_key(overrides: Any, what: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config.load("h100-sxm", overrides)
    assert refused.value.what == what


def test_a_list_can_be_overridden_as_text() -> None:
    text = config.load("h100-sxm", {"device.gpc_sm_counts": "[66, 66]"})
    assert text.device.gpc_sm_counts == (66, 66)
    numbers = config.load("h100-sxm", {"device.sm_count": 4, "device.gpc_sm_counts": [2, 2]})
    assert numbers.device.sm_count == 4


def test_two_configurations_do_not_see_each_other() -> None:
    config.load("h100-sxm", {"smem.latency": "99cycles"})
    assert config.load("h100-sxm").smem.latency_cycles != 99


def test_it_cannot_be_changed() -> None:
    h100 = config.load("h100-sxm")
    with pytest.raises(ValueError, match="frozen"):
        h100.smem.latency_cycles = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("override", "text"),
    [
        (
            {"dram.bandwith": "4TB/s"},
            "override: unknown key 'dram.bandwith'\n  try: did you mean 'dram.bandwidth'?",
        ),
        (
            {"dram.bandwidth_bytes_per_clk": "4TB/s"},
            "override: unknown key 'dram.bandwidth_bytes_per_clk'\n  try: did you mean 'dram.bandwidth'?",
        ),
        (
            {"issue.latency_cycles.alu": "4cycles"},
            "override: unknown key 'issue.latency_cycles.alu'\n  try: did you mean 'issue.latency.alu'?",
        ),
        (
            {"colour": "red"},
            "override: unknown key 'colour'\n  try: hopsim config show lists the keys",
        ),
        (
            {"dram.bandwidth": "15ns"},
            'override: dram.bandwidth: expected a bandwidth such as "64B/clk"'
            " or \"3.35TB/s\", got '15ns' (a time)\n  try: a number with one of the units"
            " B/clk, KB/clk, KiB/clk, B/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s",
        ),
        (
            {"dram.efficiency": "120%"},
            "override: dram.efficiency: expected a value less than or equal to 1, got '120%'",
        ),
        (
            {"issue.latency.alu": "-1cycles"},
            "override: issue.latency.alu: expected a value greater than or equal to 0, got '-1cycles'",
        ),
        (
            {"smem.banks": 32.5},
            "override: smem.banks: expected a whole number, got 32.5",
        ),
        ({"smem.banks": True}, 'override: smem.banks: expected a count such as "132", got True'),
        (
            {"device.sm_count": 114},
            "override: device.sm_count: gpc_sm_counts must add up to sm_count 114,"
            " got 8+16+16+16+16+16+18+18+2+2+2+2 = 132",
        ),
        (
            {"device.clock": "0MHz"},
            "override: device.clock: expected a value greater than 0, got '0MHz'",
        ),
        (
            {"clock.settling": "0us"},
            "override: clock.settling: expected a value greater than 0, got '0us'",
        ),
        (
            {"dram.refresh_interval": "0cycles"},
            "override: dram.refresh_interval: expected a value greater than or equal to 1, got '0cycles'",
        ),
        (
            {"device.gpc_sm_counts": "0,132"},
            "override: device.gpc_sm_counts: entry 0: expected a value greater than or equal to 1, got '0'",
        ),
        (
            {"dram.bandwidth": "1e400B/s"},
            "override: dram.bandwidth: expected a number that a double holds, up to 1.8e+308, got '1e400B/s'",
        ),
        (
            {"device.sm_count": 10**5000},
            "override: device.sm_count: expected a number that a double holds, up to 1.8e+308,"
            " got a larger one",
        ),
        (
            {"l2.sector": "1B"},
            "override: l2.sector: line must be 4 sectors and a power of two, got line 128 B, sector 1 B",
        ),
        (
            {"l2.capacity": "1KiB"},
            "override: l2.capacity: capacity must be at least 4096 B, a set of each partition, got 1024 B",
        ),
        (
            {"l2.latency_far": "3cycles"},
            "override: l2.latency_far: latency_far must be at least latency_near, got 3 < 243 cycles",
        ),
        (
            {"tma.rank_extra": "1cycles,2cycles"},
            "override: tma.rank_extra: rank_extra must have 5 values, one for each rank, got 2",
        ),
        (
            {"tma.multicast_apart": "256cycles"},
            "override: tma.multicast_apart: multicast_apart must be more than multicast_soon 256 cycles,"
            " got 256 cycles",
        ),
    ],
)
def test_what_is_wrong_with_an_override(override: dict[str, config.Override], text: str) -> None:
    assert message("h100-sxm", override) == text


def test_no_such_chip() -> None:
    assert (
        message("h10-sxm")
        == "no configuration named 'h10-sxm'; there are h100-sxm, h200-sxm\n  try: h100-sxm"
    )
    assert message("./none.toml") == "./none.toml: no such configuration file"


HEAD = 'hopsim_config = 1\nextends = "h100-sxm"\n'


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            "x = 1 2\n",
            ":1:7: expected the end of the line, got '2'\n"
            "  try: one entry a line; text stands in quotes",
        ),
        (
            "[smem]\n",
            ": expected hopsim_config = 1 on top, got None\n"
            "  try: write it, or use the hopsim version that this file is for",
        ),
        (
            HEAD + "[smem]\nlatncy = 3\n",
            ": unknown key 'smem.latncy'\n  try: did you mean 'smem.latency'?",
        ),
        (
            HEAD + "[smem]\nlatency = 3\n",
            ": smem.latency: expected a table with value and source, got 3\n"
            '  try: { value = 3, source = "..." }, with guess = true where nobody has measured it',
        ),
        (
            HEAD + '[smem]\nlatency = { value = "3cycles" }\n',
            ": smem.latency: a number needs a source\n"
            '  try: source = "who measured it", or guess = true with the reason',
        ),
        (
            HEAD + '[smem]\nlatency = { value = "3cycles", from = "me" }\n',
            ": smem.latency: unknown entry 'from'; expected value, source, guess",
        ),
    ],
)
def test_what_is_wrong_with_a_file(text: str, wrong: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    assert message(path) == f"{path}{wrong}"


def test_a_value_of_a_file_names_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + '[smem]\nlatency = { value = "3B", source = "me" }\n')
    assert message(path).startswith("mine.toml: smem.latency: expected a number of clock cycles")


def test_a_file_alone_must_be_complete(tmp_path: Path) -> None:
    path = write(tmp_path, 'hopsim_config = 1\n[device]\nname = "toy"\n')
    text = message(path)
    assert text.startswith(f"{path}: no value for device.sm_count, device.clock, ")
    assert text.endswith('\n  try: extends = "h100-sxm"')


def test_files_that_extend_each_other(tmp_path: Path) -> None:
    write(tmp_path, 'hopsim_config = 1\nextends = "b"\n', "a.toml")
    b = write(tmp_path, 'hopsim_config = 1\nextends = "a"\n', "b.toml")
    assert "which extends this file" in message(b)


def test_a_file_may_extend_one_beside_it(tmp_path: Path) -> None:
    write(tmp_path, HEAD + '[smem]\nlatency = { value = "31cycles", source = "me" }\n', "base.toml")
    top = write(tmp_path, 'hopsim_config = 1\nextends = "base"\n', "top.toml")
    loaded = config.load(top)
    assert (loaded.name, loaded.smem.latency_cycles) == ("top", 31)


def test_show_gives_each_value_with_its_source() -> None:
    rows = config.show(config.load("h100-sxm", {"smem.latency": "30cycles"}))
    assert [row[0] for row in rows] == [fact.key for fact in config.load("h100-sxm").facts]
    shown = {key: rest for key, *rest in rows}
    assert shown["smem.latency"] == ["30cycles", "30 cycles", "override"]
    assert shown["dram.bandwidth"] == [
        "3.35TB/s",
        "1691.92 B/clk",
        "NVIDIA H100 data sheet, SXM5  [h100-sxm.toml]",
    ]
    assert shown["device.sm_count"][:2] == ["132", ""]
    assert shown["barrier.elect"][2].startswith("guess: a vote")


def test_every_guess_is_listed_as_a_deviation() -> None:
    listed = (Path(__file__).parents[2] / "DEVIATIONS.md").read_text(encoding="utf-8")
    missing = [
        fact.key
        for fact in config.guesses(config.load("h100-sxm"))
        if f"`{fact.key}`" not in listed
    ]
    assert missing == []


def test_a_look_up_gives_an_even_part_of_a_line() -> None:
    with pytest.raises(ConfigError, match="4 sectors of a line are no multiple of 3"):
        config.load("h100-sxm", {"l2.sectors_per_look_up": 3})


def test_a_cycle_through_relative_paths_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    loop = write(folder, 'hopsim_config = 1\nextends = "../d/loop"\n', "loop.toml")
    assert message(loop) == f"{loop}: extends '../d/loop', which extends this file"


def test_a_file_may_have_the_name_of_the_chip_that_it_extends(tmp_path: Path) -> None:
    text = HEAD + '[dram]\nbandwidth = { value = "0.5TB/s", source = "x" }\n'
    mine = config.load(write(tmp_path, text, "h100-sxm.toml"))
    assert mine.dram.bandwidth_bytes_per_clk == 0.5e12 / 1.98e9
    assert mine.device == config.load("h100-sxm").device


def test_a_broken_rule_is_blamed_on_the_file_that_wrote_last(tmp_path: Path) -> None:
    write(tmp_path, HEAD + '[dram]\nbandwidth = { value = "1TB/s", source = "x" }\n', "base.toml")
    text = 'hopsim_config = 1\nextends = "base"\n'
    text += '[device]\nsm_count = { value = 131, source = "x" }\n'
    top = write(tmp_path, text, "top.toml")
    assert message(top).startswith("top.toml: device.sm_count: ")
    below = write(tmp_path, 'hopsim_config = 1\nextends = "top"\n', "below.toml")
    assert message(below).startswith("top.toml: device.sm_count: ")
    assert message("h100-sxm", {"device.sm_count": 131}).startswith("override: device.sm_count: ")


def test_a_group_is_no_number() -> None:
    with pytest.raises(ConfigError) as caught:
        config.load("h100-sxm", {"l1": 3})
    assert str(caught.value) == (
        "override: 'l1' is a group of numbers, not one\n  try: name one of it: l1.latency, l1.local_latency,"
        " l1.store_queue, l1.store_queue_per_warp, ..."
    )


@pytest.mark.parametrize("version", ["true", "1.0", '"1"', "2"])
def test_other_formats_are_refused(tmp_path: Path, version: str) -> None:
    file = write(tmp_path, f'hopsim_config = {version}\nextends = "h100-sxm"\n')
    assert "expected hopsim_config = 1 on top, got" in message(file)


@pytest.mark.parametrize("base", ["3", '["h100-sxm"]', "true"])
def test_what_extends_is_a_name(tmp_path: Path, base: str) -> None:
    file = write(tmp_path, f"hopsim_config = 1\nextends = {base}\n")
    assert "extends: expected text, got" in message(file)


def test_cycles_that_no_double_holds_are_refused() -> None:
    with pytest.raises(
        ConfigError, match="expected a number that a double holds, up to 1.8e\\+308"
    ):
        config.load("h100-sxm", {"smem.latency": "1e400cycles"})
