from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.config import load, names
from tests.cli.golden import GOLDEN, assert_golden

SILICON = Path(__file__).parents[1] / "silicon"
DATA = Path(__file__).parent / "data"


def hopsim(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    "command", [(), ("gemm",), ("run",), ("lint",), ("isa",), ("config",), ("config", "show")]
)
def test_help(command: tuple[str, ...]) -> None:
    done = hopsim(*command, "--help")
    assert done.exit_code == 0
    assert "--help" in done.stdout


@pytest.mark.parametrize("command", [(), ("zoo",), ("layout",), ("config",), ("surroundings",)])
def test_commands_are_listed_with_their_whole_sentence(command: tuple[str, ...]) -> None:
    told = hopsim(*command, "--help").stdout
    assert "..." not in told.partition("Commands:")[2].replace("[ARGS]...", "")
    whole = " ".join(told.split())
    listed: Any = get_command(app)
    for word in command:
        listed = listed.commands[word]
    for word, inner in listed.commands.items():
        sentence = " ".join(inner.help.split()).rstrip(".").partition(". ")[0]
        assert f"{word} {sentence}" in whole


def test_help_names_values_as_the_page_does() -> None:
    told = " ".join(hopsim("check", "--help").stdout.split())
    assert "--seed N Try this one order only" in told
    assert "zoo run [OPTIONS] [NAME]..." in hopsim("zoo", "run", "--help").stdout


def test_an_instruction_is_found_by_its_modifiers_too() -> None:
    def names(word: str) -> list[str]:
        done = hopsim("isa", word, "--json", "-")
        assert done.exit_code == 0, done.stdout
        return [form["name"] for form in json.loads(done.stdout)["forms"]]

    assert names("ld.global") == ["ld"]
    assert names("add.f32") == ["add"]
    assert names("cp.async.bulk.tensor.2d.shared::cluster")
    assert hopsim("isa", "ld.gobal").exit_code == 2
    assert hopsim("isa", "add.f32.wrong").exit_code == 2


def test_a_twin_is_shown_by_its_rule_where_it_is_the_only_one() -> None:
    assert hopsim("zoo", "show", "HS502").stdout == hopsim("zoo", "show", "missing-syncwarp").stdout
    done = hopsim("zoo", "show", "HS001")
    assert done.exit_code == 2
    assert done.stderr.startswith("HS001 has 3 twins\n  try: tma-read-unwaited, ")


def test_help_imports_no_simulator() -> None:
    code = (
        "import sys\nfrom hopsim.cli.app import main\nsys.argv = ['hopsim', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'pydantic', 'rich', 'simpy', 'hopsim.isa.catalog') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hopsim", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[0]) == (0, "hopsim")


@pytest.mark.parametrize(
    "command",
    [
        ("config", "show"),
        ("gemm", "--m", "64", "--n", "64", "--k", "64"),
        ("check", str(DATA / "scale.ptx"), "--launch", str(DATA / "scale.toml")),
        ("micro", "bar_sync_32"),
    ],
)
def test_an_error_of_a_set_number_stands_at_what_was_typed(command: tuple[str, ...]) -> None:
    for setting, what in (
        ("dram.bandwith=4TB/s", "unknown key 'dram.bandwith'\n  try: did you mean"),
        ("dram.bandwidth=fast", "expected a bandwidth"),
        ("device.sm_count=7", "gpc_sm_counts must add up"),
    ):
        done = hopsim(*command, "--set", "dram.latency=700cycles", "--set", setting)
        assert done.exit_code == 2
        assert done.stderr.startswith(f"--set {setting}: {what}"), done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("gemm", "--m", "64", "--n", "64", "--k", "64"),
        ("run", str(DATA / "scale.ptx"), "--args", str(DATA / "scale.toml")),
        ("check", str(DATA / "scale.ptx"), "--launch", str(DATA / "scale.toml"), "--seeds", "0"),
        ("ladder", "--m", "64", "--n", "64", "--k", "64", "--only", "pipelined"),
        (
            "fp8",
            "--m",
            "64",
            "--n",
            "64",
            "--k",
            "128",
            "--tile-m",
            "64",
            "--tile-n",
            "64",
            "--stages",
            "2",
        ),
        (
            "surroundings",
            "maps",
            "--m",
            "64",
            "--n",
            "64",
            "--k",
            "64",
            "--tile",
            "64x64x64",
            "--stages",
            "2",
        ),
        (
            "surroundings",
            "dependent",
            "--m",
            "64",
            "--n",
            "64",
            "--k",
            "64",
            "--l",
            "64",
            "--tile",
            "64x64x64",
        ),
        ("micro", "bar_sync_32"),
        (
            "compare",
            "--recorded",
            "--folder",
            str(SILICON),
            "--only",
            "pingpong",
            "--largest",
            "512",
        ),
    ],
)
def test_numbers_that_were_replaced_are_named(command: tuple[str, ...]) -> None:
    words = (*command, "--set", "dram.latency=700cycles", "--set", "dram.bandwidth=4TB/s")
    told = hopsim(*words).stdout
    assert "set           dram.latency = 700cycles\n              dram.bandwidth = 4TB/s\n" in told
    content = json.loads(hopsim(*words, "--json", "-").stdout)
    assert content["set"] == {"dram.latency": "700cycles", "dram.bandwidth": "4TB/s"}
    assert "\nset " not in hopsim(*command).stdout


def test_a_launch_file_without_a_program_is_not_passed_over() -> None:
    for words in ((), ("pipelined",)):
        done = hopsim("mutate", *words, "--launch", "launch.toml")
        assert done.exit_code == 2
        assert "--launch: no FILE.ptx is given that launch.toml would launch" in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (
            MemoryError("8 TiB"),
            2,
            "not enough memory on this machine: 8 TiB\n  try: a smaller problem",
        ),
    ],
)
def test_what_is_nobody_s_fault_is_said_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    def fail(word: str = "") -> list[object]:
        raise error

    monkeypatch.setattr("hopsim.isa.support.support_matrix", fail)
    done = hopsim("isa")
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", message + "\n")


def test_an_interrupt_while_commands_are_imported_is_said_without_a_traceback() -> None:
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from hopsim.__main__ import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize("words", [("isa", "wgmma"), ("isa", "wgmma", "--json", "-"), ("--help",)])
def test_a_full_disk_is_said_in_a_line(words: tuple[str, ...]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "hopsim", *words],
            stdout=stream, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    first, *others = done.stderr.splitlines()
    assert first == "standard output: cannot write: No space left on device"
    assert all(line.startswith("  try: ") for line in others)


def test_a_full_disk_takes_nothing_from_the_json(tmp_path: Path) -> None:
    full, out = Path("/dev/full"), tmp_path / "out.json"
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "hopsim", "isa", "wgmma", "--json", str(out)],
            stdout=stream, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    content = json.loads(out.read_text())
    assert (done.returncode, content["exit_code"], bool(content["forms"])) == (2, 2, True)
    assert content["error"]["where"] == "standard output"
    assert done.stderr.count("standard output: ") == 1


def test_what_nobody_reads_any_more_is_no_error_to_tell() -> None:
    words = [sys.executable, "-m", "hopsim", "isa"]
    done = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.stdout is not None
    done.stdout.close()
    assert done.stderr is not None
    assert (done.stderr.read(), done.wait()) == ("", 0)
    done.stderr.close()


def test_lint_reads_no_standard_input() -> None:
    done = hopsim("lint", "-")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "expected the name of a file, got -; standard input is /dev/stdin here" in done.stderr


def test_lint_lists_what_is_not_modelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)
    done = hopsim("lint", "textures.ptx")
    assert done.exit_code == 4
    assert_golden(done.stdout, GOLDEN / "lint_textures.txt")
    content = json.loads(hopsim("lint", "textures.ptx", "--json", "-").stdout)
    assert (content["exit_code"], content["kernels"][0]["unsupported"][0]["line"]) == (4, 13)


def test_lint_of_good_and_of_wrong_text(tmp_path: Path) -> None:
    done = hopsim("lint", str(DATA / "scale.ptx"))
    assert (done.exit_code, done.stdout) == (
        0,
        f"{DATA / 'scale.ptx'}: scale: ok, all 11 instructions modelled\n",
    )
    bad = tmp_path / "bad.ptx"
    bad.write_text((DATA / "scale.ptx").read_text().replace("mul.f32 %f3", "mul.f32 %f33"))
    done = hopsim("lint", str(bad))
    assert done.exit_code == 2
    assert f"{bad}:" in done.stdout + done.stderr
    bad.write_text("what is this")
    assert hopsim("lint", str(bad)).exit_code == 2
    assert hopsim("lint", str(tmp_path / "none.ptx")).exit_code == 2


def test_lint_lists_all_that_is_wrong(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ptx"
    text = (DATA / "scale.ptx").read_text()
    wrong = text.replace("mul.f32", "mul.f64").replace("st.global.f32", "st.shared.f64")
    bad.write_text(wrong)
    lines = [
        number
        for number, line in enumerate(wrong.splitlines(), 1)
        if "mul.f64" in line or "st.shared.f64" in line
    ]
    assert len(lines) == 2
    done = hopsim("lint", str(bad))
    assert done.exit_code == 2
    for number in lines:
        assert f"{bad}:{number}:" in done.stdout
    assert done.stdout.endswith("scale: 2 errors\n")
    (found,) = json.loads(hopsim("lint", str(bad), "--json", "-").stdout)["kernels"]
    assert len(found["errors"]) == 2


def test_lint_lists_wrong_names_with_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, where it first stands; what does not hang on them is judged all the same."""
    monkeypatch.chdir(DATA)
    done = hopsim("lint", "mistakes.ptx")
    assert done.exit_code == 2
    assert_golden(done.stdout, GOLDEN / "lint_mistakes.txt")
    (found,) = json.loads(hopsim("lint", "mistakes.ptx", "--json", "-").stdout)["kernels"]
    assert (len(found["errors"]), len(found["unsupported"])) == (6, 1)


def test_isa_filters_by_the_beginning_of_an_opcode() -> None:
    done = hopsim("isa", "mbarrier.try_wait")
    assert done.exit_code == 0
    assert done.stdout.startswith("mbarrier.try_wait")
    every = json.loads(hopsim("isa", "--json", "-").stdout)["forms"]
    assert {"add", "wgmma.mma_async.sync.aligned"} <= {form["name"] for form in every}
    wrong = hopsim("isa", "wgmna")
    assert (wrong.exit_code, wrong.stderr.splitlines()[0]) == (
        2,
        "no modelled instruction begins with 'wgmna'",
    )
    assert "wgmma" in wrong.stderr


def test_config_show() -> None:
    done = hopsim("config", "show", "h100-sxm", "--set", "dram.bandwidth=4TB/s")
    assert done.exit_code == 0
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("dram.bandwidth")]
    assert line.split() == ["dram.bandwidth", "4TB/s", "2020.2", "B/clk", "override"]
    facts = {
        fact["key"]: fact
        for fact in json.loads(hopsim("config", "show", "--json", "-").stdout)["facts"]
    }
    assert (facts["smem.latency"]["value"], facts["smem.latency"]["unit"]) == (23, "cycles")


def test_config_show_as_toml_loads_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(hopsim("config", "show", "--toml", "--set", "smem.latency=31cycles").stdout)
    assert load(path).smem.latency_cycles == 31
    assert hopsim("config", "validate", str(path)).exit_code == 0


def test_config_validate() -> None:
    done = hopsim("config", "validate")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == list(names())
    assert hopsim("config", "validate", "h100-sxm", "--json", "-").exit_code == 0


def test_a_wrong_configuration_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'hopsim_config = 1\nextends = "h100-sxm"\n[smem]\nlatency = { value = "9 parsecs", source = "x" }\n'
    )
    done = hopsim("config", "validate", str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "mine.toml: smem.latency" in done.stderr
