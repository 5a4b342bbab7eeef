"""The rules of the house that a program can check: layers, lazy imports, files that must be there,
packaging.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_import_contracts() -> None:
    pytest.importorskip("importlinter", reason="extra `dev`")
    done = run(
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as m; m()",
        "--no-cache",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_of_hopsim_is_light() -> None:
    heavy = ("pydantic", "simpy", "rich", "typer", "hopsim.config", "cuda")
    code = "import sys, hopsim; print(*sorted(sys.modules), sep='\\n')"
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert [name for name in heavy if name in loaded] == []


def test_subpackages_of_the_simulator_start_empty() -> None:
    allowed = {
        "config",
        "kernels",
        "reference",
    }  # they re-export what users call; nothing below them
    full = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "hopsim").rglob("__init__.py"))
        if path.parent != ROOT / "hopsim" and path.parent.name not in allowed
        if re.search(r"^\s*(from|import) ", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert full == []


def test_nothing_inside_imports_the_facade() -> None:
    def imports_it(path: Path) -> bool:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import) and any(name.name == "hopsim" for name in node.names):
                return True
            if isinstance(node, ast.ImportFrom) and node.module == "hopsim":
                return any(not (ROOT / "hopsim" / name.name).is_dir() for name in node.names)
        return False

    files = sorted((ROOT / "hopsim").rglob("*.py"))
    assert [str(path.relative_to(ROOT)) for path in files if imports_it(path)] == []


def test_constraints_cover_what_the_project_asks_for() -> None:
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    project = PROJECT["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[\[><=]", text)[0].lower().replace("_", "-") for text in asked}
    assert names - pinned == set()


def test_changelog_names_this_version() -> None:
    assert f"## {PROJECT['project']['version']}" in (ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"
    )


DEVIATION = re.compile(
    r"^### (D-[A-Z0-9-]+): .+\n\n\*(\w+)\*\n"
    r"\n- hopsim: (?:.+\n)(?:  .+\n)*- hardware or PTX: (?:.+\n)(?:  .+\n)*- evidence: (?:.+\n)(?:  .+\n)*$",
    re.MULTILINE,
)


def test_deviations_have_one_section_each_with_a_status() -> None:
    text = (ROOT / "DEVIATIONS.md").read_text(encoding="utf-8")
    sections = DEVIATION.findall(text)
    assert len(sections) == text.count("\n### ") > 50
    assert len({name for name, _ in sections}) == len(sections)
    assert {status for _, status in sections} == {"accepted", "gap", "open"}


def test_deviations_cited_in_the_code_exist() -> None:
    text = (ROOT / "DEVIATIONS.md").read_text(encoding="utf-8")
    listed = {name for name, _ in DEVIATION.findall(text)}
    cited = {
        found
        for path in sorted((ROOT / "hopsim").rglob("*.py"))
        for found in re.findall(r"\bD-[A-Z][A-Z0-9-]*[A-Z0-9]", path.read_text(encoding="utf-8"))
    }
    assert cited - listed == set()


def test_guesses_in_the_code_name_their_section() -> None:
    unnamed = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted((ROOT / "hopsim").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bGuess\b", line) and not re.search(r"\bD-[A-Z]", line)
    ]
    assert unnamed == []


PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "DEVIATIONS.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


ROOMS = "|".join(path.name for path in (ROOT / "hopsim").iterdir() if path.is_dir())
TOPS = "hopsim|tests|docs|examples|benchmarks|configs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = {ROOT / name for name in re.findall(rf"`((?:{TOPS})/[\w./-]+)`", text)}
    named |= {ROOT / "hopsim" / name for name in re.findall(rf"`((?:{ROOMS})/[\w./-]+)`", text)}
    assert [str(path) for path in sorted(named) if not path.exists()] == []


def test_the_first_example_of_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    done = run(sys.executable, "-c", example)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("[]", "[0. 2. 4. 6.]")
