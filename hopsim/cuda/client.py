"""The caller's side of a device: in a process of its own, or in this one.

Both kinds have `call(method, *arguments, limit_s)`, which raises DriverFailure, WorkerLost or WorkerHung.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, cast

from hopsim.cuda.requests import DriverFailure
from hopsim.cuda.worker import receive, send

DEVICE: Final = "hopsim.cuda.device:Device"
START_LIMIT_S: Final = 120.0


class WorkerHung(Exception):
    """No answer within the time limit; the process has been ended."""


class WorkerLost(Exception):
    """The process ended by itself."""


Answers = queue.SimpleQueue[tuple[str, Any] | None]


def _listen(stream: Any, answers: Answers) -> None:
    """Pass on what the process says; None when it says no more."""
    try:
        while True:
            answers.put(receive(stream))
    except (EOFError, OSError, ValueError):
        answers.put(None)


def _end(process: subprocess.Popen[bytes], reader: threading.Thread) -> None:
    """End the process and close what led to it."""
    process.kill()
    process.wait()
    reader.join(timeout=5.0)
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):  # what was not sent yet has no reader any more
            if stream is not None:
                stream.close()


class WorkerProcess:
    """A device in a process of its own; `close()` ends it, as does the end of this object.

    Args:
        arguments: of the factory: the device's index.
        factory: `module:name` of what makes the device there.
    Raises: DriverFailure, WorkerLost, WorkerHung: it could not be made.
    """

    def __init__(self, arguments: tuple[Any, ...], factory: str = DEVICE) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from hopsim.cuda.worker import main; main()", factory,
             pickle.dumps(arguments).hex()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
        )  # fmt: skip
        self._answers: Answers = queue.SimpleQueue()
        self._reader = threading.Thread(
            target=_listen, args=(self._process.stdout, self._answers), daemon=True
        )
        self._reader.start()
        self.close = weakref.finalize(self, _end, self._process, self._reader)
        try:
            self._answer(START_LIMIT_S)
        except DriverFailure:
            self.close()
            raise

    @property
    def process_id(self) -> int:
        """Of the device's process."""
        return self._process.pid

    def _answer(self, limit_s: float) -> Any:
        try:
            answer = self._answers.get(timeout=limit_s)
        except queue.Empty:
            self.close()
            raise WorkerHung from None
        if answer is None:
            self.close()
            raise WorkerLost(f"exit status {self._process.returncode}")
        kind, value = answer
        if kind == "failed":
            raise value
        return value

    def call(self, method: str, *arguments: Any, limit_s: float) -> Any:
        """Call a method of the device.

        Raises: DriverFailure; WorkerHung: no answer within `limit_s` seconds; WorkerLost.
        """
        assert self._process.stdin is not None
        try:
            send(cast("Any", self._process.stdin), (method, arguments))
        except OSError:
            self.close()
            raise WorkerLost(f"exit status {self._process.returncode}") from None
        return self._answer(limit_s)


class DirectDevice:
    """A device in this process: quicker calls, but a hang hangs the caller, and a fault loses the context."""

    def __init__(self, arguments: tuple[Any, ...], factory: str = DEVICE) -> None:
        module, _, name = factory.partition(":")
        self._device = getattr(import_module(module), name)(*arguments)

    def call(self, method: str, *arguments: Any, limit_s: float) -> Any:
        """Call a method of the device; no limit applies."""
        del limit_s
        return getattr(self._device, method)(*arguments)

    def close(self) -> None:
        """Leave the device to the end of the process."""
