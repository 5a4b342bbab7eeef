"""What became of the mutants of a kernel."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from hopsim.mutate.judge import Judgment, Score
from hopsim.report.quantities import plural
from hopsim.report.story import Story

STYLES = {"reported": "green", "survivor": "red"}


def score_report(score: Score, verbose: bool = False) -> Story:
    """Return the score, the survivors, and why mutants are equivalent.

    Args:
        verbose: whether to tell every mutant.
    """
    text = Text()
    if not score.judgments:
        text.append(f"{score.subject}: ", style="bold")
        text.append("nothing to mutate: no synchronization to remove or weaken", style="yellow")
        return Story(text)
    counts = {
        name: len(score.of(name))
        for name in ("reported", "contested", "equivalent", "survivor", "refused")
    }
    told = ", ".join(
        plural(count, name) if name == "survivor" else f"{count} {name}"
        for name, count in counts.items()
        if count
    )
    style = "red" if score.survivors else "green"
    text.append(f"{score.subject}: ", style="bold")
    text.append(f"{score.percent:.1f} %", style=style)
    text.append(f" of {plural(len(score.judgments), 'mutant')}: {told}\n")
    for one in score.judgments:
        if verbose or one.outcome in ("survivor", "equivalent"):
            _judgment(text, one)
    text.rstrip()
    return Story(text)


def _judgment(text: Text, one: Judgment) -> None:
    text.append(f"  {one.outcome:<11}", style=STYLES.get(one.outcome, ""))
    text.append(str(one.mutant))
    text.append(f"    {', '.join(one.rules)}" if one.rules else "")
    text.append(f"\n             {one.why}\n" if one.why else "\n")


def score_content(score: Score) -> dict[str, Any]:
    """Return a score as plain data."""
    return {
        "kernel": score.subject,
        "percent": score.percent,
        "mutants": [
            {
                "operator": one.mutant.operator, "line": one.mutant.line, "before": one.mutant.before,
                "after": one.mutant.after, "outcome": one.outcome, "rules": list(one.rules), "why": one.why,
            }
            for one in score.judgments
        ],
    }  # fmt: skip
