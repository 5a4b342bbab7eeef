"""Which model made a prediction: a hash of all that decides what a simulation gives, and of nothing else."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

MODEL: Final = ("hw", "isa", "layout", "launch", "runtime", "config")
"""Packages that decide what a simulation gives."""
HASH_DIGITS: Final = 16
"""Of a hash, as files of predictions hold it."""


def model_hash(config: str, settings: dict[str, str] | None = None) -> str:
    """Return a hash of everything that decides what a simulation of a program gives.

    Comments, docstrings, blank lines and the words of errors decide nothing: a prediction outlives what only they change.
    """
    from hopsim.config import load

    digest = hashlib.sha256(repr(load(config, settings)).encode())
    package = Path(__file__).parents[1]
    for name in MODEL:
        for path in sorted((package / name).rglob("*.py")):
            digest.update(code_of(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()


def code_of(source: str) -> str:
    """Return a Python source without comments, docstrings, empty lines and the words of what it raises."""
    rows = source.splitlines()
    lines: list[str | None] = list(rows)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            lines[row - 1] = rows[row - 1][:column].rstrip() or None
        elif token.type == tokenize.NL and not rows[row - 1].strip():
            lines[row - 1] = None
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    for first, last in _texts(statements):
        lines[first - 1 : last] = [None] * (last - first + 1)
    for first, last, raised in _raised(statements, rows):
        lines[first - 1 : last] = [raised, *[None] * (last - first)]
    return "".join(f"{line}\n" for line in lines if line is not None)


class _Untold(ast.NodeTransformer):
    """Takes the words out of an expression."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Empty a string."""
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """Empty an f-string, whatever it is made of."""
        del node
        return ast.Constant("")


def _raised(statements: Sequence[ast.stmt], rows: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the lines of each `raise` that has them for itself, and the statement in one line without its words."""
    for node in statements:
        if not isinstance(node, ast.Raise):
            continue
        last = node.end_lineno or node.lineno
        before = rows[node.lineno - 1].encode()[: node.col_offset].decode()
        behind = rows[last - 1].encode()[node.end_col_offset :].decode().lstrip()
        if not before.strip() and (not behind or behind.startswith("#")):
            yield node.lineno, last, before + ast.unparse(_Untold().visit(node))


def _texts(statements: Sequence[ast.stmt]) -> list[tuple[int, int]]:
    """Return the lines of strings that stand alone as statements: docstrings, and those below names."""
    beside = Counter(row for one in statements for row in {one.lineno, one.end_lineno})
    return [
        (one.lineno, one.end_lineno or one.lineno)
        for one in statements
        if isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Constant)
        and isinstance(one.value.value, str)
        and beside[one.lineno] == beside[one.end_lineno] == 1
    ]
