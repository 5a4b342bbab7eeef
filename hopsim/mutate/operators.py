"""Mutants of a PTX text: each removes or weakens one synchronization, and leaves every line where it was.

An operator looks at one line and gives the lines that could stand there instead; instructions that it needs more of are put
on the same line, so that line numbers stay those of the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hopsim.isa.program.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed text.

    Args:
        operator: what was done.  line: 1-based.
        before, after: the instruction; empty when it was removed.
        ptx: the whole text.
    """

    operator: str
    line: int
    before: str
    after: str
    ptx: str

    def __str__(self) -> str:
        change = f"{self.before}  =>  {self.after}" if self.after else self.before
        return f"{self.operator} at :{self.line}    {change}"


@dataclass(frozen=True, slots=True)
class Site:
    """One instruction, cut into the parts that operators change.

    Args:
        prefix: label and guard, with blanks.  code: opcode and operands without the semicolon.
        number: 1-based line.
    """

    prefix: str
    code: str
    number: int

    @property
    def opcode(self) -> str:
        """The opcode with its modifiers."""
        return self.code.split(None, 1)[0]


LINE: Final = re.compile(
    r"^(?P<prefix>\s*(?:[$\w.]+:\s*)?(?P<guard>@!?[%$\w.]+\s+)?)(?P<code>[a-z][^;]*?)\s*;\s*(?://.*)?$"
)
REMOVED: Final = (
    "fence.", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "bar.sync", "bar.arrive", "bar.warp.sync",
    "barrier.sync", "barrier.arrive", "barrier.cluster.arrive", "barrier.cluster.wait", "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group", "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all",
    "cp.async.mbarrier.arrive", "mbarrier.arrive", "mbarrier.expect_tx", "mbarrier.init", "membar",
)  # fmt: skip
SPACES: Final = {
    "fence.proxy.async": "fence.proxy.async.global",
    "fence.proxy.async.shared::cta": "fence.proxy.async.global",
    "fence.proxy.async.shared::cluster": "fence.proxy.async.shared::cta",
    "fence.proxy.async.global": "fence.proxy.async.shared::cta",
}
WEAKER: Final = (
    (re.compile(r"\.(acq_rel|release|acquire)\.(gpu|cluster|sys)\b"), r".\1.cta"),
    (
        re.compile(r"^(mbarrier\.(?:arrive|try_wait|test_wait)[\w.]*)\.(?:release|acquire)\."),
        r"\1.relaxed.",
    ),
    (
        re.compile(r"^barrier\.cluster\.arrive(?:\.release)?(?!\.relaxed)"),
        "barrier.cluster.arrive.relaxed",
    ),
)
WAITS: Final = (
    "wgmma.wait_group",
    "cp.async.bulk.wait_group",
    "cp.async.wait_group",
    "cp.async.wait_all",
)

Operator = Callable[[Site], Iterator[tuple[str, str]]]


def _remove(site: Site) -> Iterator[tuple[str, str]]:
    if site.opcode.startswith(REMOVED):
        yield "removed", ""


def _pass_at_once(site: Site) -> Iterator[tuple[str, str]]:
    if site.opcode.startswith(("mbarrier.try_wait", "mbarrier.test_wait")):
        predicate = site.code.split(None, 1)[1].split(",")[0].strip()
        yield "wait removed", f"setp.eq.u32 {predicate}, 0, 0"


def _flip_parity(site: Site) -> Iterator[tuple[str, str]]:
    found = re.match(
        r"(mbarrier\.(?:try|test)_wait\.parity\S*\s+[^,]+,\s*\[[^\]]+\],\s*)([^,\s]+)(.*)$",
        site.code,
    )
    if found is None:
        return
    head, parity, rest = found.groups()
    if parity in ("0", "1"):
        yield "parity flipped", f"{head}{1 - int(parity)}{rest}"
    else:
        yield (
            "parity flipped",
            f"{{ .reg .b32 %mutant_parity; xor.b32 %mutant_parity, {parity}, 1; {head}%mutant_parity{rest}; }}",
        )


def _one_more_group(site: Site) -> Iterator[tuple[str, str]]:
    found = re.match(r"((?:wgmma|cp\.async|cp\.async\.bulk)\.wait_group\S*\s+)(\d+)$", site.code)
    if found is not None:
        yield "group count plus one", f"{found.group(1)}{int(found.group(2)) + 1}"


def _narrow_fence(site: Site) -> Iterator[tuple[str, str]]:
    if site.code in SPACES:
        yield "fence space changed", SPACES[site.code]


def _weaken(site: Site) -> Iterator[tuple[str, str]]:
    for pattern, replacement in WEAKER:
        changed = pattern.sub(replacement, site.code, count=1)
        if changed != site.code and ".mbarrier_init" not in site.code:
            yield "semantics weakened", changed


def _drop_expectation(site: Site) -> Iterator[tuple[str, str]]:
    found = re.match(
        r"(mbarrier\.arrive)\.expect_tx(\S*\s+[^,]+,\s*\[[^\]]+\]),\s*(.+)$", site.code
    )
    if found is None:
        return
    yield "expect_tx removed", f"{found.group(1)}{found.group(2)}"
    arrive = f"mbarrier.arrive.expect_tx{found.group(2)}"
    count = found.group(3)
    if count.isdigit():
        yield "bytes changed", f"{arrive}, {int(count) + 16}"
        yield "bytes changed", f"{arrive}, {int(count) // 2}"


def _change_count(site: Site) -> Iterator[tuple[str, str]]:
    found = re.match(r"(mbarrier\.init\S*\s+\[[^\]]+\],\s*)(\d+)$", site.code)
    if found is not None:
        count = int(found.group(2))
        yield "count changed", f"{found.group(1)}{count + 1}"
        if count > 1:
            yield "count changed", f"{found.group(1)}{count - 1}"
    found = re.match(r"(bar(?:rier)?\.(?:sync|arrive)\S*\s+[^,]+,\s*)(\d+)$", site.code)
    if found is not None:
        yield "count changed", f"{found.group(1)}{int(found.group(2)) + 32}"


OPERATORS: Final[tuple[Operator, ...]] = (
    _remove, _pass_at_once, _flip_parity, _one_more_group, _narrow_fence, _weaken, _drop_expectation, _change_count,
)  # fmt: skip


def mutants(kernel: Kernel) -> list[Mutant]:
    """Return every mutant of a kernel, by line."""
    lines = kernel.module.lines
    found: list[Mutant] = []
    sites = list(_sites(kernel))
    for site in sites:
        for operator in OPERATORS:
            for name, code in operator(site):
                text = _rewritten(site, code)
                found.append(
                    Mutant(name, site.number, site.code, code, _with(lines, {site.number: text}))
                )
    found += _moved_arrives(kernel, sites)
    return sorted(found, key=lambda mutant: mutant.line)


def _sites(kernel: Kernel) -> Iterator[Site]:
    lines = kernel.module.lines
    for number in dict.fromkeys(instruction.span.line for instruction in kernel.body.instructions):
        match = LINE.match(lines[number - 1])
        if match is not None:
            yield Site(match["prefix"], match["code"].strip(), number)


def _rewritten(site: Site, code: str) -> str:
    if not code:
        return re.sub(r"@!?\S+\s+$", "", site.prefix).rstrip()
    if code.startswith("{"):
        # A guard stands before the last instruction only.
        guard = re.search(r"@!?\S+\s+$", site.prefix)
        if guard is not None:
            head, _, last = code.rpartition("; mbarrier")
            code = f"{head}; {guard.group()}mbarrier{last}"
            return f"{site.prefix[: guard.start()]}{code}"
        return f"{site.prefix}{code}"
    return f"{site.prefix}{code};"


def _with(lines: Sequence[str], changed: dict[int, str]) -> str:
    return "\n".join(changed.get(number, line) for number, line in enumerate(lines, 1)) + "\n"


def _moved_arrives(kernel: Kernel, sites: Sequence[Site]) -> Iterator[Mutant]:
    """Move each arrive before the group wait above it, when nothing but straight code lies between."""
    lines = kernel.module.lines
    body = kernel.body.instructions
    starts = {body[at].span.line for at in kernel.body.labels.values() if at < len(body)}
    for k, site in enumerate(sites):
        if not site.opcode.startswith("mbarrier.arrive") or "expect_tx" in site.opcode:
            continue
        block = site
        for other in reversed(sites[:k]):
            if block.number in starts or other.opcode.startswith("bra"):
                break
            block = other
            if other.opcode.startswith(WAITS):
                moved = _rewritten(site, site.code)
                changed = {
                    other.number: f"{moved} {_rewritten(other, other.code).strip()}",
                    site.number: "",
                }
                yield Mutant(
                    "arrive before the wait", site.number, site.code, f"moved to :{other.number}",
                    _with(lines, changed),
                )  # fmt: skip
                break
