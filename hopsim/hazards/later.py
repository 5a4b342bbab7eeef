"""Questions for the end of the run: what came later may name a race better (`Finding.late`)."""

from __future__ import annotations

from collections.abc import Callable

from hopsim.hazards import places
from hopsim.hazards.advice import advise
from hopsim.hazards.clocks import Agent
from hopsim.hazards.findings import Finding
from hopsim.hazards.naming import epoch_of
from hopsim.hazards.ordering import Gap
from hopsim.hazards.records import Record


def learned_later(
    finding: Finding, first: Record, second: Record, gap: Gap
) -> Callable[[], str | None]:
    """Return a question for the end of the run: has another thread of the first one's CTA waited for the second access?

    Then the first one came too early, for no barrier of its CTA held it up; the finding says so.
    """
    assert gap.first is not None
    early, (agent, _) = gap.first, gap.second
    epoch = epoch_of(second, agent)

    def ask() -> str | None:
        line = places.learned_before(first, early, agent, epoch)
        if line:
            words = {"learned": f":{line}", "barrier": "bar.sync 0;"}
            _, finding.missing, finding.hint = advise("HS500", second, first, words)
        return None

    return ask


def waited_later(
    record: Record, reader: Record, who: tuple[Agent, int]
) -> Callable[[], str | None]:
    """Return a question for the end of the run: did the reader wait for this load after all, but late?"""
    agent, mask = who
    epoch = epoch_of(reader, agent)

    def ask() -> str | None:
        assert record.done is not None
        for other, when, lanes in record.done.observers:
            if other is agent and when >= epoch and lanes & mask:
                return "HS002"
        return None

    return ask


def may_be_first(reader: Record, writer: Record) -> bool:
    """Whether a read may have been meant for what an operation brought after it: it found only what threads wrote."""
    return reader.is_thread and not reader.uses and bool(writer.flight and writer.flight.aims)


def never_used(
    finding: Finding, reader: Record, writer: Record, who: tuple[Agent, int]
) -> Callable[[], str | None]:
    """Return a question for the end of the run: has nobody else read what went over the data of a read?

    Then that read came too early, and the finding is turned round.
    """
    waited = waited_later(writer, reader, who)

    def ask() -> str | None:
        if writer.used:
            return None
        finding.first, finding.second, finding.late = finding.second, finding.first, None
        return waited() or "HS001"

    return ask
