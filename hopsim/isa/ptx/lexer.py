"""PTX text as tokens, with every place kept for messages.

`Source` holds the text twice: as written, and with comments blanked out by spaces, so that offsets
stay true.  `Cursor` walks tokens one at a time; the parser uses it for everything but plain
instructions, which it takes whole with one regular expression.

Source: PTX ISA 8.7 "Source Format", "Comments", "Identifiers".
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, NoReturn

from hopsim.errors import PtxError

IDENTIFIER: Final = r"(?:[A-Za-z_][\w$]*+|[$%][\w$]++)"
"""A PTX identifier: `foo`, `_a`, `$L__BB0_1`, `%r5`; `_` alone is the sink."""

# A preprocessor's `# 12 "a.cu"` says where a text came from: no more than a comment.
_COMMENT: Final = re.compile(
    r'"[^"\n]*+"|//[^\n]*+|/\*.*?\*/|/\*|^[ \t]*+\#[ \t]*+(?:line[ \t]++)?\d[^\n]*+',
    re.DOTALL | re.MULTILINE,
)
_NOT_NEWLINE: Final = re.compile(r"[^\n]")
_TOKEN: Final = re.compile(
    rf"""\s*+(?:
    (?P<name>{IDENTIFIER}(?:\.[xyzwrgba](?![\w$]))?)
    |(?P<number>(?:\d+\.\d*|\.\d+|\d+(?=[eE][+-]?\d))(?:[eE][+-]?\d+)?(?![\w.$])
        |\d[\w$]*+(?:\.[\w$]*+)?)
    |(?P<dotted>\.[A-Za-z_]\w*+(?:::\w++)*+)
    |(?P<string>"[^"\n]*+")
    |(?P<punctuation><<|>>|<=|>=|==|!=|&&|\|\||\S)
    |(?P<end>\Z))""",
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the PTX text: 1-based line and column."""

    line: int
    column: int


class Source:
    """One PTX text: `text` as written, `code` with comments as spaces, and the places of its lines.

    Raises:
        PtxError: a `/*` without its `*/`.
    """

    __slots__ = ("_line_starts", "code", "path", "text")

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self._line_starts: list[int] = []
        self.code = _COMMENT.sub(self._blank, text) if "/" in text or "#" in text else text

    def _blank(self, match: re.Match[str]) -> str:
        found = match[0]
        if found[0] == '"':
            return found
        if found[0] != "/" or found[1] == "/":
            return " " * len(found)
        if len(found) < 4:
            self.fail(
                "unterminated comment: expected '*/' before the end of the file",
                match.start(),
                "close the comment with '*/'",
            )
        return _NOT_NEWLINE.sub(" ", found)

    def locate(self, offset: int) -> Span:
        """Return the line and column of an offset into the text."""
        starts = self._starts()
        line = bisect_right(starts, offset)
        return Span(line, offset - starts[line - 1] + 1)

    def offset_of(self, span: Span) -> int:
        """Return the offset into the text of a place that `locate` gave."""
        return self._starts()[span.line - 1] + span.column - 1

    def line_text(self, line: int) -> str:
        """Return one line (1-based) as written; empty when the text has no such line."""
        starts = self._starts()
        if not 0 < line <= len(starts):
            return ""
        end = self.text.find("\n", starts[line - 1])
        return self.text[starts[line - 1] : end if end >= 0 else None]

    def _starts(self) -> list[int]:
        starts = self._line_starts
        if not starts:
            starts.append(0)
            starts.extend(match.end() for match in re.finditer("\n", self.text))
        return starts

    def error(self, what: str, offset: int, hint: str = "") -> PtxError:
        """Build the error that points at an offset of the text."""
        span = self.locate(offset)
        return PtxError(
            what,
            where=self.path,
            line=span.line,
            column=span.column,
            text=self.line_text(span.line),
            hint=hint,
        )

    def fail(self, what: str, offset: int, hint: str = "") -> NoReturn:
        """Raise the error that points at an offset of the text."""
        raise self.error(what, offset, hint)


class Cursor:
    """A walk over the tokens of a source; `kind`, `text`, `start`, `end` describe the current one.

    `kind` is `name` (a component included: `%tid.x`), `number`, `dotted` (`.align`), `string`,
    `punctuation` or `end`.  `previous_end` is where the token before ended.
    """

    __slots__ = ("_code", "end", "kind", "previous_end", "source", "start", "text")

    def __init__(self, source: Source, offset: int) -> None:
        self.source = source
        self._code = source.code
        self.end = offset
        self.seek(offset)

    def seek(self, offset: int) -> None:
        """Make the first token at or after `offset` the current one."""
        self.end = offset
        self.advance()

    def advance(self) -> None:
        """Go to the next token."""
        self.previous_end = self.end
        match = _TOKEN.match(self._code, self.end)
        kind = match and match.lastgroup
        assert match, self.end
        assert kind, self.end
        self.kind = kind
        self.start, self.end = match.span(kind)
        self.text = match[kind]

    def at(self, kind: str) -> bool:
        """Whether the current token is of this kind."""
        return self.kind == kind

    def take(self) -> str:
        """Return the current token's text and go to the next."""
        text = self.text
        self.advance()
        return text

    def accept(self, text: str) -> bool:
        """Skip the current token if it is `text`."""
        if self.text != text:
            return False
        self.advance()
        return True

    def expect(self, text: str, after: str, hint: str = "") -> None:
        """Skip the token `text`, or raise; `after` says where it should stand: `after '%r1'`."""
        if not self.accept(text):
            if text == ";":
                self.fail_missing_semicolon(after)
            self.fail(f"expected '{text}' {after}, got {self.shown()}", hint)

    def shown(self) -> str:
        """Describe the current token for a message."""
        if self.kind == "end":
            return "the end of the file"
        if len(self.text) == 1 and not self.text.isprintable():
            name = unicodedata.name(self.text, "a control character")
            return f"U+{ord(self.text):04X} ({name})"
        return f"'{self.text}'"

    def fail(self, what: str, hint: str = "") -> NoReturn:
        """Raise an error that points at the current token."""
        offset = self.start if self.kind != "end" else len(self._code.rstrip())
        self.source.fail(what, offset, hint)

    def fail_missing_semicolon(self, after: str, or_else: str = "") -> NoReturn:
        """Raise for a statement that should have ended; points behind it if the line ends there."""
        wanted = f"'{or_else}' or ';'" if or_else else "';'"
        on_next_line = "\n" in self._code[self.previous_end : self.start]
        if self.kind == "end" or on_next_line or self.text == "}":
            line = self.source.locate(self.start).line
            place = f" on line {line}" if on_next_line and self.kind != "end" else ""
            self.source.fail(
                f"missing ';' {after}, got {self.shown()}{place}",
                self.previous_end,
                "end the statement with ';'",
            )
        self.fail(f"expected {wanted} {after}, got {self.shown()}")
