"""A timeline of a timed run: hears spans and arrows, writes them for Perfetto (<https://ui.perfetto.dev>).

It is a `hopsim.hw.timing.recorder.Recorder`.  Perfetto opens Chrome's trace format, whose times are microseconds; here
one microsecond on the screen is one cycle of the SM clock, and the metadata says so.

>>> timeline = Timeline(clock_hz=1.98e9)
>>> timeline.span(("sm 0", "tma"), "load", 10, 30, line=7)
>>> [event["ph"] for event in timeline.events()]
['M', 'M', 'M', 'X', 'C', 'C']
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from hopsim.trace.tracks import Track, home, lanes, process_key, thread_key

SMS_MAX: Final = 8
"""SMs that a timeline shows by default: a launch on all of them repeats itself, and a file of it opens slowly."""
# Threads that say how many operations are in flight, and the counter's name.
COUNTED: Final = {"tma": "TMA operations in flight", "tensor core": "wgmma groups in flight"}


class Span(NamedTuple):
    """Something that was busy, or waited, in `[start, stop)` cycles."""

    name: str
    start: float
    stop: float
    args: dict[str, object]


class Flow(NamedTuple):
    """What happened on `source` (its span of `op`) at `start` made something happen on `target` at `stop`."""

    name: str
    source: Track
    start: float
    target: Track
    stop: float
    op: int | None = None


class Timeline:
    """Spans and flows of the first SMs that are heard of.

    Args:
        sms_max: how many SMs to keep; what else is heard is counted, and the metadata says how much.
        clock_hz: of the cycles, for the metadata; None when unknown.
        title: what ran.
        lines: of its PTX; what stands on the line of an interval is shown with it.
    """

    def __init__(
        self,
        sms_max: int = SMS_MAX,
        clock_hz: float | None = None,
        title: str = "",
        lines: Sequence[str] = (),
    ) -> None:
        self.sms_max = sms_max
        self.clock_hz = clock_hz
        self.title = title
        self.lines = lines
        self._spans: dict[Track, list[Span]] = {}
        self._flows: list[Flow] = []
        self._homes: dict[str, tuple[str, str]] = {}
        self._kept: set[str] = set()
        self._left_out: set[str] = set()
        self._lost = 0

    # -- the recorder's protocol -------------------------------------------------------------------

    def span(self, track: Track, name: str, start: float, stop: float, **args: object) -> None:
        """Keep an interval, if its SM is one of those shown."""
        if self._keeps(track[0]):
            thread, warps = self._home(track[1])
            if warps:
                args["warps"] = warps
            self._spans.setdefault((track[0], thread), []).append(Span(name, start, stop, args))
        else:
            self._lost += 1

    def flow(
        self,
        name: str,
        source: Track,
        start: float,
        target: Track,
        stop: float,
        op: int | None = None,
    ) -> None:
        """Keep an arrow, if both its ends are on SMs that are shown."""
        if self._keeps(source[0]) and self._keeps(target[0]):
            source = (source[0], self._home(source[1])[0])
            target = (target[0], self._home(target[1])[0])
            self._flows.append(Flow(name, source, start, target, stop, op))
        else:
            self._lost += 1

    def _home(self, thread: str) -> tuple[str, str]:
        found = self._homes.get(thread)
        if found is None:
            found = self._homes[thread] = home(thread)
        return found

    def _keeps(self, process: str) -> bool:
        if process in self._kept:
            return True
        if process in self._left_out:
            return False
        is_sm = process.startswith("sm ")
        if is_sm and sum(one.startswith("sm ") for one in self._kept) >= self.sms_max:
            self._left_out.add(process)
            return False
        self._kept.add(process)
        return True

    # -- the file ----------------------------------------------------------------------------------

    def metadata(self) -> dict[str, object]:
        """Return what the numbers mean, and what is not in the file."""
        content: dict[str, object] = {
            "timestamps": "SM cycles from the start of the launch: 1 us on the screen is 1 cycle",
            "kernel": self.title,
            "shown": sorted(self._kept, key=process_key),
        }
        if self.clock_hz is not None:
            content["clock_hz"] = self.clock_hz
        if self._left_out:
            content["left_out"] = (
                f"{self._lost} spans and flows of {len(self._left_out)} more SMs;"
                f" the first {self.sms_max} are shown"
            )
        return content

    def events(self) -> list[dict[str, Any]]:
        """Return the events of Chrome's trace format, in a fixed order."""
        content: list[dict[str, Any]] = []
        places: dict[Track, list[_Slice]] = {}
        processes = sorted({track[0] for track in self._spans}, key=process_key)
        for pid, process in enumerate(processes, start=1):
            content.append(_named("process_name", pid, 0, process))
            content.append(
                {
                    "ph": "M",
                    "name": "process_sort_index",
                    "pid": pid,
                    "tid": 0,
                    "args": {"sort_index": pid},
                }
            )
            threads = sorted((t[1] for t in self._spans if t[0] == process), key=thread_key)
            tid = 0
            for thread in threads:
                track = (process, thread)
                spans = sorted(self._spans[track], key=lambda span: (span.start, span.stop))
                for number, lane in enumerate(lanes(spans), start=1):
                    tid += 1
                    content.append(
                        _named(
                            "thread_name",
                            pid,
                            tid,
                            thread if number == 1 else f"{thread} #{number}",
                        )
                    )
                    slices = [_Slice(pid, tid, span) for span in lane]
                    places.setdefault(track, []).extend(slices)
                    content.extend(one.event(self._text(one.span)) for one in slices)
                if thread in COUNTED:
                    content.extend(_counter(pid, COUNTED[thread], spans))
        content.extend(self._arrows(places))
        return content

    def _text(self, span: Span) -> str:
        """Return what stands on the line of an interval; empty where that is not known."""
        line = span.args.get("line")
        if not isinstance(line, int) or not 0 < line <= len(self.lines):
            return ""
        return " ".join(self.lines[line - 1].partition("//")[0].split())

    def _arrows(self, places: dict[Track, list[_Slice]]) -> Iterable[dict[str, Any]]:
        """Yield the two ends of each flow, bound to slices: viewers drop an end that lies on none."""
        finders = {track: _Finder(slices) for track, slices in places.items()}
        number = 0
        for flow in self._flows:
            if flow.source not in finders or flow.target not in finders:
                continue
            # What completes a phase points at the phase that ends; what is woken begins something.
            ends = " mbarrier " in f" {flow.target[1]} "
            source = finders[flow.source].of(flow.op) or finders[flow.source].at(
                flow.start, ends=True
            )
            target = finders[flow.target].at(flow.stop, ends=ends)
            if source is None or target is None:
                continue
            tip = target.inside(flow.stop)
            tail = source.inside(min(flow.start, tip))
            if tail >= target.span.stop:
                # The cause began when its effect was over: a viewer shows no arrow back in time.
                continue
            tip = max(tip, tail)
            number += 1
            common = {"cat": "flow", "name": flow.name, "id": number}
            yield {"ph": "s", **common, **source.point(tail)}
            yield {"ph": "f", "bp": "e", **common, **target.point(tip)}

    def save(self, path: str | Path) -> None:
        """Write the file, compressed if its name ends in `.gz`; the same run gives the same bytes.

        Raises: OSError: it cannot be written.
        """
        stream = io.StringIO()
        stream.write('{"displayTimeUnit":"ns",\n"otherData":')
        stream.write(json.dumps(self.metadata(), sort_keys=True))
        stream.write(',\n"traceEvents":[\n')
        lines = (json.dumps(event, separators=(",", ":")) for event in self.events())
        stream.write(",\n".join(lines))
        stream.write("\n]}\n")
        data = stream.getvalue().encode()
        if str(path).endswith(".gz"):
            data = gzip.compress(data, mtime=0)
        Path(path).write_bytes(data)


class _Slice:
    """A span in its place."""

    __slots__ = ("pid", "span", "tid")

    def __init__(self, pid: int, tid: int, span: Span) -> None:
        self.pid = pid
        self.tid = tid
        self.span = span

    def event(self, ptx: str) -> dict[str, Any]:
        """Return the slice, with what stands on its line in the PTX."""
        name, start, stop, args = self.span
        if ptx:
            args = {**args, "ptx": ptx}
        content: dict[str, Any] = {
            "ph": "X", "name": name, "pid": self.pid, "tid": self.tid, "ts": _plain(start),
            # Of rounded times, lest it ends a digit behind where the next slice begins: a viewer drops that one.
            "dur": _plain(_plain(stop) - _plain(start)),
        }  # fmt: skip
        if args:
            content["args"] = args
        return content

    def inside(self, time: float) -> float:
        """Return the time inside the slice that is nearest to one: its end does not belong to it."""
        start, stop = self.span.start, self.span.stop
        return max(start, min(time, stop - min(0.5, (stop - start) / 2)))

    def point(self, time: float) -> dict[str, Any]:
        """Return a place on the slice."""
        return {"pid": self.pid, "tid": self.tid, "ts": _plain(time)}


class _Finder:
    """Finds the slice of a track that an end of a flow belongs to."""

    def __init__(self, slices: list[_Slice]) -> None:
        self._by_start: dict[float, _Slice] = {}
        self._by_stop: dict[float, _Slice] = {}
        self._by_op: dict[object, _Slice] = {}
        for one in slices:
            if "op" in one.span.args:
                self._by_op[one.span.args["op"]] = one
            self._by_start.setdefault(one.span.start, one)
            self._by_stop.setdefault(one.span.stop, one)
        self._slices = slices

    def of(self, op: int | None) -> _Slice | None:
        """Return the slice of an operation."""
        return None if op is None else self._by_op.get(op)

    def at(self, time: float, *, ends: bool) -> _Slice | None:
        """Return a slice that ends (else begins) at `time`, or one that contains it."""
        order = (self._by_stop, self._by_start) if ends else (self._by_start, self._by_stop)
        for table in order:
            if time in table:
                return table[time]
        return next((one for one in self._slices if one.span.start <= time <= one.span.stop), None)


def _named(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _counter(pid: int, name: str, spans: list[Span]) -> Iterable[dict[str, Any]]:
    """Yield how many of the spans are open, at each time that this changes."""
    changes: dict[float, int] = {}
    for span in spans:
        changes[span.start] = changes.get(span.start, 0) + 1
        changes[span.stop] = changes.get(span.stop, 0) - 1
    count = 0
    for time in sorted(changes):
        if changes[time]:
            count += changes[time]
            yield {
                "ph": "C",
                "name": name,
                "pid": pid,
                "ts": _plain(time),
                "args": {"count": count},
            }


def _plain(time: float) -> int | float:
    """Return a time without digits that nobody can see."""
    rounded = round(time, 3)
    return int(rounded) if rounded == int(rounded) else rounded
