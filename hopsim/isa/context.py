"""What an instruction may ask of the thread that executes it: the only way semantics reach the machine.

`ctx` in the declarations of `hopsim.isa.ops` has these methods; the machine's strand implements them.  Values are raw bits
(`hopsim.isa.values`).  A method that can wait returns BLOCKED after it has told the machine what it waits for, and is
called again later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hopsim.errors import HopsimError
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Predicate, Value
from hopsim.isa.wgmma import WgmmaShape


class Context(Protocol):
    """The executing threads, as instructions see them."""

    def fault(self, what: str, hint: str = "", source: str = "") -> HopsimError:
        """Make (not raise) an error at the current instruction."""
        ...

    # memory
    def load(
        self,
        space: str,
        address: Value,
        word: int,
        count: int,
        sem: str = "weak",
        scope: str = "",
        fetch_bytes: int = 0,
    ) -> Any: ...
    def store(
        self, space: str, address: Value, word: int, values: Any, sem: str = "weak", scope: str = ""
    ) -> None: ...
    def atomic(
        self,
        space: str,
        address: Value,
        word: int,
        operation_in: Callable[[str], Callable[..., int]],
        operands: list[list[Any]],
        sem: str = "relaxed",
        scope: str = "gpu",
        is_read: bool = True,
    ) -> Any: ...
    def to_generic(self, space: str, address: Value) -> Value: ...
    def from_generic(self, space: str, address: Value) -> Value: ...
    def is_space(self, space: str, address: Value) -> Any: ...
    def map_address(self, space: str, address: Value, rank: Value) -> Value: ...
    def cta_rank(self, address: Value) -> Value: ...

    # barriers and fences
    def named_barrier(
        self, action: str, number: Value, count: Value | None, aligned: bool, red: Any = None
    ) -> Any: ...
    def cluster_arrive(self, aligned: bool, sem: str) -> None: ...
    def cluster_wait(self, aligned: bool, sem: str) -> Any: ...
    def fence(self, what: str, *detail: Any) -> None: ...
    def setmaxnreg(self, action: str, count: int) -> Any: ...
    def sleep(self, nanoseconds: Value) -> None: ...

    # mbarriers
    def mbarrier_init(self, space: str, address: Value, count: Value) -> None: ...
    def mbarrier_inval(self, space: str, address: Value) -> None: ...
    def mbarrier_arrive(
        self,
        space: str,
        address: Value,
        count: Value | None,
        expect: Value | None,
        drop: bool,
        sem: str,
        scope: str,
        no_complete: bool = False,
    ) -> Any: ...
    def mbarrier_expect_tx(
        self, space: str, address: Value, count_bytes: Value, sem: str, scope: str
    ) -> None: ...
    def mbarrier_complete_tx(self, space: str, address: Value, count_bytes: Value) -> None: ...
    def mbarrier_test(
        self,
        space: str,
        address: Value,
        parity: Value | None,
        state: Value | None,
        sem: str,
        scope: str,
        may_wait: bool,
    ) -> Any: ...

    # lanes of a warp
    def shfl(self, mode: str, value: Value | None, b: Value, c: Value, mask: Value) -> Any: ...
    def vote(self, mode: str, predicate: Any, mask: Value) -> Any: ...
    def match(self, mode: str, value: Value | None, width_bits: int, mask: Value) -> Any: ...
    def redux(self, fold: Callable[[list[int]], int], value: Value | None, mask: Value) -> Any: ...
    def elect(self, mask: Value) -> Any: ...
    def active_mask(self) -> Value: ...
    def warp_sync(self, mask: Value) -> Any: ...
    def read_clock(self, name: str) -> int: ...

    # the device runtime
    def print_formatted(self, template: Value, arguments: Value) -> Value: ...
    def fail_assertion(self, message: Value, file: Value, line: Value, function: Value) -> None: ...
    def heap_allocate(self, size: Value) -> Value: ...
    def heap_free(self, address: Value) -> None: ...
    def call_nowhere(self, address: Value) -> None: ...
    def call_again(self) -> None: ...

    # matrices
    def ldmatrix(self, space: str, address: Value, count: int, trans: bool) -> Any: ...
    def stmatrix(
        self, space: str, address: Value, count: int, trans: bool, values: Any
    ) -> None: ...
    def move_matrix(self, value: Value | None) -> Any: ...
    def mma_sync(
        self, what: str, product: Callable[..., Any], *operands: Any, register_bits: int = 32
    ) -> Any: ...
    def wgmma_fence(self) -> None: ...
    def wgmma_commit(self) -> Any: ...
    def wgmma_wait(self, newest: int) -> Any: ...
    def wgmma(
        self,
        shape: WgmmaShape,
        d: tuple[int, ...],
        a_registers: tuple[int, ...] | None,
        a_descriptor: Value | None,
        b_descriptor: Value,
        scale_d: Predicate,
        negate_a: bool,
        negate_b: bool,
        metadata: tuple[int, int] | None = None,
    ) -> Any: ...

    # copies
    def cp_async(
        self,
        b: Value,
        a: Value,
        count_bytes: int,
        source_bytes: Value | None,
        fetch_bytes: int,
        through_l1: bool,
    ) -> None: ...
    def cp_async_commit(self) -> None: ...
    def cp_async_wait(self, newest: int | None) -> Any: ...
    def cp_async_mbarrier(self, space: str, address: Value, no_increment: bool) -> None: ...
    def async_store(
        self,
        address: Value,
        barrier_address: Value,
        word: int,
        values: list[Any],
        reduce: Callable[[int, int], int] | None,
    ) -> None: ...
    def tma_load(
        self,
        shared: Value,
        tensor_map: Value,
        coordinates: Any,
        offsets: Any | None,
        barrier: Value,
        mask: Value | None,
        space: str,
    ) -> None: ...
    def tma_store(
        self, shared: Value, tensor_map: Value, coordinates: Any, im2col: bool, reduce: str
    ) -> None: ...
    def tma_prefetch(self, tensor_map: Value, coordinates: Any, offsets: Any | None) -> None: ...
    def prefetch_map(self, tensor_map: Value) -> None: ...
    def bulk_load(
        self,
        shared: Value,
        source: Value,
        count_bytes: Value,
        barrier: Value,
        mask: Value | None,
        space: str,
    ) -> None: ...
    def bulk_peer(
        self,
        target: Value,
        source: Value,
        count_bytes: Value,
        barrier: Value,
        reduce: str = "",
        kind: ScalarType | None = None,
    ) -> None: ...
    def bulk_store(
        self, target: Value, shared: Value, count_bytes: Value, reduce: str, kind: ScalarType | None
    ) -> None: ...
    def bulk_prefetch(self, source: Value, count_bytes: Value) -> None: ...
    def bulk_commit(self) -> None: ...
    def bulk_wait(self, newest: int, reading: bool) -> Any: ...
    def replace_map_field(
        self, space: str, address: Value, field: str, ordinal: Value, value: Value
    ) -> None: ...
    def copy_map(self, target: Value, source: Value, scope: str) -> None: ...
