"""setmaxnreg: registers go from warps to the pool of their CTA and back.

Source: PTX ISA 8.7 "setmaxnreg".
"""

from __future__ import annotations

from typing import Any

from hopsim.errors import MachineFault
from hopsim.hw.machine.convergence import ConvergenceOps
from hopsim.hw.machine.waiting import Wait
from hopsim.isa.forms.form import BLOCKED

SETMAXNREG = 'PTX ISA 8.7, "setmaxnreg"'
TOGETHER = "it is .sync.aligned: let all threads of the warpgroup execute it"


class RegisterOps(ConvergenceOps):
    """Registers that warps give away and take."""

    def setmaxnreg(self, action: str, count: int) -> Any:
        """setmaxnreg: give registers of this warpgroup to the pool of the CTA, or take some (and wait for them)."""
        cta = self.cta
        if not self.machine.setup.moves_registers:
            return None  # ptxas ignores it; the checker says so (HS602)
        what = f"setmaxnreg.{action} {count}"
        if self.converge(what, TOGETHER, SETMAXNREG) is BLOCKED:
            return BLOCKED
        self._check_move(what)
        wanted = 0
        for warp in self.warps:
            wanted += (count - cta.warp_registers[warp]) * 32
        if action == "dec":
            if wanted > 0:
                raise self.fault(
                    f"setmaxnreg.dec {count}: the warp has only {cta.warp_registers[self.warps[0]]}"
                )
            self._set_registers(count, what)
            cta.free_registers -= wanted
            waiters, cta.register_waiters = cta.register_waiters, []
            for strand in waiters:
                self.machine.wake(strand)
            return None
        if wanted < 0:
            raise self.fault(
                f"setmaxnreg.inc {count}: the warp has {cta.warp_registers[self.warps[0]]} already"
            )
        if wanted > cta.free_registers:
            cta.register_waiters.append(self)
            self.block(Wait("registers", cta, (count, wanted, cta.free_registers)))
            return BLOCKED
        cta.free_registers -= wanted
        self._set_registers(count, what)
        return None

    def _set_registers(self, count: int, what: str) -> None:
        where = self.where()
        for warp in self.warps:
            self.cta.warp_registers[warp] = count
            self.cta.register_moves.setdefault(warp, []).append((what, where))

    def _check_move(self, what: str) -> None:
        """Stop where another warp of the warpgroup has executed a different setmaxnreg, or has exited without this one.

        Equal ones at several places do the same, so that a compiler may give each warp's branch its own.
        """
        moves = self.cta.register_moves
        for warp in self.warps:
            before = len(moves.get(warp, ()))
            for other in self._warps_beside(warp):
                theirs = moves.get(other, ())
                if before < len(theirs):
                    if theirs[before][0] != what:
                        raise self.fault(
                            f"{what} of warp {warp} is {theirs[before][0]} for warp {other} of its warpgroup",
                            TOGETHER,
                            SETMAXNREG,
                        )
                elif not self.cta.live_threads_of(range(other, other + 1)):
                    raise self.fault(_partly(what, other), TOGETHER, SETMAXNREG)

    def check_moves_at_exit(self) -> None:
        """Stop where a warp has exited without a setmaxnreg that another one of its warpgroup has executed."""
        moves = self.cta.register_moves
        for warp in self.warps:
            if self.cta.live_threads_of(range(warp, warp + 1)):
                continue
            done = len(moves.get(warp, ()))
            for other in self._warps_beside(warp):
                theirs = moves.get(other, ())
                if len(theirs) > done:
                    what, where = theirs[done]
                    raise MachineFault(
                        _partly(what, warp), where=where, hint=TOGETHER, source=SETMAXNREG
                    )

    def _warps_beside(self, warp: int) -> range:
        """Return the warps of a warp's warpgroup; the last one of a CTA may have fewer than four."""
        return range(warp & ~3, min((warp & ~3) + 4, len(self.cta.warp_registers)))


def _partly(what: str, warp: int) -> str:
    return f"{what} executed by part of a warpgroup: warp {warp} has exited without it"


__all__ = ["RegisterOps"]
