"""The process that owns a device: it answers one request after another, and ends with its parent.

Messages are pickles with a length before them, on what were standard input and output: a request is
(method, arguments), an answer (`ok`, value) or (`failed`, DriverFailure).
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from importlib import import_module
from typing import Any, BinaryIO

from hopsim.cuda.requests import DriverFailure

HEADER_BYTES = 8


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=5)
    stream.write(len(data).to_bytes(HEADER_BYTES, "little"))
    stream.write(data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one message.

    Raises: EOFError: the other side is gone.
    """
    return pickle.loads(_exactly(stream, int.from_bytes(_exactly(stream, HEADER_BYTES), "little")))


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def serve(factory: str, args: tuple[Any, ...], requests: BinaryIO, answers: BinaryIO) -> None:
    """Make the device that `module:name` names, and answer requests until the parent is gone."""
    try:
        module, _, name = factory.partition(":")
        device = getattr(import_module(module), name)(*args)
    except DriverFailure as failure:
        send(answers, ("failed", failure))
        return
    send(answers, ("ok", None))
    inbox: queue.SimpleQueue[tuple[str, tuple[Any, ...]]] = queue.SimpleQueue()

    def listen() -> None:
        # A thread of its own notices that the parent is gone while a kernel hangs.
        try:
            while True:
                inbox.put(receive(requests))
        except (EOFError, OSError):
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        method, arguments = inbox.get()
        try:
            send(answers, ("ok", getattr(device, method)(*arguments)))
        except DriverFailure as failure:
            send(answers, ("failed", failure))


def main() -> None:
    """Serve the factory named on the command line; stray prints go to standard error.

    An interrupt from the keyboard reaches the whole group of processes; the parent decides what it means.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    factory, arguments = sys.argv[1], pickle.loads(bytes.fromhex(sys.argv[2]))
    serve(factory, arguments, sys.stdin.buffer, answers)
