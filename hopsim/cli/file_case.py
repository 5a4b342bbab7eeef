"""A launch of a PTX file as its TOML describes it, to be run again and again."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from hopsim.cli.launch_file import LaunchFile, make_arguments, read_launch_file
from hopsim.errors import ConfigError, LaunchError
from hopsim.explore.case import Arguments, Device
from hopsim.isa.program.kernel import Kernel, Module, load, loads


@dataclass(frozen=True)
class FileCase:
    """One entry of a PTX file.

    Args:
        path: of the PTX.  launch_path: of the TOML.
        entry: name of the kernel; None takes the TOML's, or the only one.
        inputs_seed: of random arrays.
        text: PTX to take instead of the file's.
    Raises: ConfigError, LaunchError, PtxError, NotModelled: when what they describe is first needed.
    """

    path: Path
    launch_path: Path
    entry: str | None = None
    inputs_seed: int = 0
    text: str | None = None

    @cached_property
    def described(self) -> LaunchFile:
        """The launch description."""
        return read_launch_file(self.launch_path)

    @property
    def grid(self) -> tuple[int, ...]:
        """CTAs."""
        return self.described.grid

    @property
    def block(self) -> tuple[int, ...]:
        """Threads of a CTA."""
        return self.described.block

    @property
    def cluster(self) -> tuple[int, ...] | None:
        """CTAs of a cluster."""
        return self.described.cluster

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory."""
        return self.described.shared_bytes

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def kernel(self) -> Kernel:
        """Load and decode the kernel."""
        module = load(self.path) if self.text is None else loads(self.text, str(self.path))
        kernel = only_entry(module, self.entry or self.described.entry)
        assert kernel.instructions is not None, "reading them raises what is not modelled"
        return kernel

    def arguments(self, gpu: Device) -> Arguments:
        """Put the arrays on a device."""
        described = read_launch_file(self.launch_path)
        args, arrays = make_arguments(described, gpu, self.inputs_seed)
        return Arguments(args, arrays)


def only_entry(module: Module, name: str | None) -> Kernel:
    """Return the entry of that name, or the only one.

    Raises: LaunchError.
    """
    names = list(module)
    if name is None and len(names) != 1:
        found = f"{len(names)} entries: {', '.join(names)}" if names else "no entry"
        raise LaunchError(
            f"{module.path} has {found}",
            hint=f"--entry {names[0]}" if names else "a .visible .entry",
        )
    return module[name or names[0]]


def no_launch_file(path: Path, command: str, option: str) -> ConfigError:
    """Return the error that a command needs a launch file, with what writes one."""
    return ConfigError(
        "how is the kernel launched?",
        where=option,
        hint=f"hopsim run {path} --template > FILE.toml, fill it in, then hopsim {command} {path} {option} FILE.toml",
    )
