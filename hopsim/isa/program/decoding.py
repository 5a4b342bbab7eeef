"""The instructions of a body bound to their forms, or why they are not: not modelled, or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hopsim.errors import NotModelled, PtxError
from hopsim.isa.catalog import FAMILIES
from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.forms.decode import decode
from hopsim.isa.program.calls import Expanded
from hopsim.isa.ptx.ast import PtxModule

SM_90A_ALONE: Final = ("wgmma", "setmaxnreg", "tensormap.replace")
"""Instructions of this architecture only, as ptxas 13.0 has them."""

# Importing the catalogue declares every instruction form; without them nothing could be decoded.
_DECLARED = FAMILIES


class Decoded(NamedTuple):
    """What became of the instructions of a body.

    Args:
        bound: those that are modelled, in order.
        unsupported: (line, text, why) of those that are not.
        errors: what is wrong, by line.
    """

    bound: tuple[BoundInstruction, ...]
    unsupported: tuple[tuple[int, str, str], ...]
    errors: tuple[PtxError, ...]

    def right(self) -> Decoded:
        """Return it.

        Raises: PtxError: the first, where instructions are wrong.
        """
        if self.errors:
            # A traceback grows with each raise of the same error.
            raise self.errors[0].with_traceback(None)
        return self

    def modelled(self, kernel: str, path: str) -> tuple[BoundInstruction, ...]:
        """Return the body as it is written, bound to its forms.

        Args:
            kernel, path: its name and file, for the error.
        Raises: NotModelled when some instruction is not modelled, listing all of them; PtxError when one is wrong.
        """
        bound, unsupported, _ = self.right()
        if unsupported:
            shown = "\n".join(
                f"    {line}: {text}    ({why})" for line, text, why in unsupported[:20]
            )
            count = (
                "1 instruction that is"
                if len(unsupported) == 1
                else f"{len(unsupported)} instructions that are"
            )
            more = f"\n    ... and {len(unsupported) - 20} more" if len(unsupported) > 20 else ""
            raise NotModelled(
                f"kernel {kernel} uses {count} not modelled:\n{shown}{more}",
                where=path,
                hint="hopsim isa lists what is modelled",
            )
        return bound


def decode_body(
    expanded: Expanded, too_large: Sequence[PtxError], tree: PtxModule, lines: Sequence[str]
) -> Decoded:
    """Bind every instruction of a body to its form.

    Args:
        expanded: the body, with what is wrong and what is not modelled in its names and calls.
        too_large: what is wrong with the sizes of its variables.
        tree, lines: the module and its text.
    """
    bound: list[BoundInstruction] = []
    body, wrong_names, refused = expanded
    errors = [*wrong_names, *too_large]
    carry = body.carry
    unsupported = [
        (span.line, lines[span.line - 1].strip() if span.line <= len(lines) else "call", why)
        for span, why in refused
    ]
    for instruction in body.instructions:
        number = instruction.span.line
        text = lines[number - 1] if 0 < number <= len(lines) else instruction.mnemonic
        try:
            bound.append(decode(instruction, carry, tree.path, text))
            _check_target(bound[-1], tree, text)
        except NotModelled as problem:
            unsupported.append((number, text.strip(), problem.what))
        except PtxError as error:
            errors.append(error)
    # A function that is called twice has each of its mistakes twice.
    errors = list({(one.line, one.column, one.what): one for one in errors}.values())
    errors.sort(key=lambda one: (one.line, one.column))
    unsupported = sorted(dict.fromkeys(unsupported), key=lambda one: one[0])
    return Decoded(tuple(bound), tuple(unsupported), tuple(errors))


def _check_target(bound: BoundInstruction, tree: PtxModule, text: str) -> None:
    """Raise where an instruction is of sm_90a alone and the module is for another target."""
    target = tree.target[0]
    if target != "sm_90a" and bound.form.name.startswith(SM_90A_ALONE):
        span = bound.instruction.span
        raise PtxError(
            f"{bound.instruction.mnemonic} needs .target sm_90a, got {target}",
            where=tree.path,
            line=span.line,
            column=span.column,
            text=text,
            source=bound.form.source,
        )
