"""What a learner has done, kept on this machine only: a small JSON file in the user's data folder.

Source: XDG Base Directory Specification 0.8, "XDG_DATA_HOME".
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Progress:
    """Lessons that are done, and how many hints of each were seen.

    Args:
        lost: why what is in the file could not be read; empty where it could, or there is no file.
    """

    path: Path
    done: list[str] = field(default_factory=list[str])
    hints: dict[str, int] = field(default_factory=dict[str, int])
    lost: str = ""

    def save(self) -> None:
        """Write the file; a folder that cannot be written is no reason to stop learning."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            content = {"done": self.done, "hints": self.hints}
            self.path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        except OSError:
            return

    def passed(self, name: str) -> None:
        """Remember that a lesson is done."""
        if name not in self.done:
            self.done.append(name)
        self.save()

    def next_hint(self, name: str, count: int) -> int:
        """Return the number of the next hint, from 1; the last one again when all were seen."""
        number = self.hints[name] = min(self.hints.get(name, 0) + 1, count)
        self.save()
        return number


def progress_file(environment: Mapping[str, str] | None = None) -> Path:
    """Return where progress is kept."""
    found = os.environ if environment is None else environment
    home = found.get("XDG_DATA_HOME") or str(
        Path(found.get("HOME", "~")).expanduser() / ".local/share"
    )
    return Path(home) / "hopsim" / "learn.json"


def read_progress(path: Path) -> Progress:
    """Return what is in the file; nothing when there is none, or none that can be read, which `lost` tells."""
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        return Progress(
            path,
            [str(one) for one in content["done"]],
            {str(k): int(v) for k, v in content["hints"].items()},
        )
    except FileNotFoundError:
        return Progress(path)
    except OSError as error:
        return Progress(path, lost=error.strerror or "it cannot be read")
    except (ValueError, KeyError, TypeError, AttributeError):
        return Progress(path, lost="it does not hold what hopsim learn writes")
