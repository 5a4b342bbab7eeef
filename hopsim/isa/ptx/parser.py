r"""PTX text to syntax tree.

Plain instructions, labels and `.loc` are each taken by one match of `_STATEMENT`; declarations and
everything that is wrong go token by token (`Cursor`), which gives precise messages.  Knows no
instruction: any dotted word with operands parses, legality is checked elsewhere.

    >>> module = parse(".version 8.7\n.target sm_90a\n.entry k() { ret; }")
    >>> [item.name for item in module.items]
    ['k']

Source: PTX ISA 8.7 "Syntax", "Directives".
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from hopsim.isa.ptx.ast import (
    Block,
    Directive,
    Function,
    Guard,
    Instruction,
    Label,
    LocDirective,
    Name,
    PtxModule,
    SourceLoc,
    Statement,
    Variable,
)
from hopsim.isa.ptx.declarations import (
    SPACES,
    declared_name,
    integer,
    parse_parameters,
    parse_registers,
    parse_variables,
    simple_declaration,
)
from hopsim.isa.ptx.header import read_header
from hopsim.isa.ptx.lexer import IDENTIFIER, Cursor, Source
from hopsim.isa.ptx.nesting import check_depth
from hopsim.isa.ptx.operands import OperandReader
from hopsim.isa.ptx.suggest import closest

# Behind an instruction without its `;`; the words that are modifiers too (`.global`) are none here.
_NO_DIRECTIVE: Final = (
    r"(?!\.(?:reg|loc|file|section|pragma|branchtargets|callprototype|calltargets)\b)"
)
_STATEMENT: Final = re.compile(
    rf"""\s*+(?:
    (?P<label>{IDENTIFIER})\s*+:(?!:)
    |(?:@\s*+(?P<negated>!?)\s*+(?P<guard>{IDENTIFIER})\s++)?
     (?P<opcode>[A-Za-z]\w*+(?:\s*+{_NO_DIRECTIVE}\.\w++(?:::\w++)*+)*+)(?![\w$:])(?P<operands>[^;]*+);
    |\.loc\s++(?P<file>\d++)\s++(?P<line>\d++)\s++(?P<column>\d++)(?P<rest>(?:\s*+,\s*+(?:
        function_name\s++[\w$.]++(?:\s*+\+\s*+\d++)?+|inlined_at\s++\d++\s++\d++\s++\d++))*+)
    |(?P<open>\{{)
    |(?P<close>\}}))""",
    re.VERBOSE | re.ASCII,
)
_STRING_LIST: Final = re.compile(r'\s*+"[^"\n]*+"(?:\s*+,\s*+"[^"\n]*+")*+\s*+(?=;)')
_NAME_LIST: Final = re.compile(r"[\w$%,\s]*+(?=;)", re.ASCII)
_PROTOTYPE: Final = re.compile(r"[^;{}@]*+(?=;)")
_DIRECTIVE_TEXTS: Final = {
    "pragma": _STRING_LIST,
    "alias": _NAME_LIST,
    "branchtargets": _NAME_LIST,
    "calltargets": _NAME_LIST,
    "callprototype": _PROTOTYPE,
}
"""What may stand between these directives and their `;`."""
_LINE_REST: Final = re.compile(r"[^\n]*")
_TRAILING_BLANKS: Final = re.compile(r"[ \t\r]+\n")
_MODULE_PRAGMA: Final = '"nounroll"'
"""What ptxas (13.0) takes of pragmas outside of functions."""
_NO_SECTION: Final = re.compile(
    r"[{;\"]|\.(?:entry|func|visible|extern|weak|reg|global|const|shared)\b"
)
"""What no section holds: its `}` is missing where it comes before the next one."""
_LINKAGE: Final = ("extern", "visible", "weak", "common")
_MODULE_TEXT: Final = ("pragma", "alias")
_BODY_TEXT: Final = ("pragma", "branchtargets", "callprototype", "calltargets")
_MODULE_WORDS: Final = (
    *_LINKAGE, *SPACES, *_MODULE_TEXT, "entry", "func", "file", "section"
)  # fmt: skip
_BODY_WORDS: Final = (*_BODY_TEXT, *SPACES, "reg", "loc", "file", "section")
_PERFORMANCE: Final = {
    "maxnreg": (1, 1),
    "maxntid": (1, 3),
    "reqntid": (1, 3),
    "minnctapersm": (1, 1),
    "reqnctapercluster": (1, 3),
    "maxclusterrank": (1, 1),
    "explicitcluster": (0, 0),
    "blocksareclusters": (0, 0),
    "noreturn": (0, 0),
    "abi_preserve": (1, 1),
    "abi_preserve_control": (1, 1),
}
"""Least and most numbers after each.  Source: PTX ISA 8.7 "Performance-Tuning Directives",
"Cluster Dimension Directives", "Kernel and Function Directives"."""

_FUNCTIONS_ONLY: Final = ("noreturn", "abi_preserve", "abi_preserve_control")
_SINCE: Final[dict[str, tuple[int, int]]] = {
    "blocksareclusters": (9, 0),
    "abi_preserve": (9, 0),
    "abi_preserve_control": (9, 0),
}
"""The `.version` from which on ptxas (13.0) takes a directive."""
_POSITIVE: Final = ("maxnreg", "maxntid", "reqntid", "minnctapersm")
_EXCLUSIVE: Final = (("maxntid", "reqntid"), ("reqnctapercluster", "maxclusterrank"))
"""Of these ptxas (13.0) takes one only."""


def parse(text: str, path: str = "<ptx>") -> PtxModule:
    """Parse a PTX text.

    Args:
        text: the whole text.
        path: its name in messages.

    Returns:
        The module; its items in the order of the text.

    Raises:
        PtxError: the text is not PTX; the message has line, column, the line and a caret.
        NotModelled: blocks or parts of constants are nested deeper than hopsim reads.
    """
    return _Parser(Source(text, path)).module()


class _Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.operands = OperandReader(source)
        self.opcodes: dict[str, tuple[str, ...]] = {}
        self.version = (0, 0)

    # --- module ----------------------------------------------------------------------------------

    def module(self) -> PtxModule:
        cursor = Cursor(self.source, 0)
        version, target, address_size = read_header(cursor)
        self.version = version
        items: list[Function | Variable | Directive] = []
        while not cursor.at("end"):
            items.extend(self._item(cursor))
        return PtxModule(
            version, target, address_size, tuple(items), self.source.path, self.source.text
        )

    def _item(self, cursor: Cursor) -> list[Function] | list[Variable] | list[Directive]:
        start = cursor.start
        word = self._directive_word(cursor, _MODULE_WORDS, "at module level")
        if word == "file":
            return [self._line_directive(cursor)]
        if word == "section":
            return [self._section(cursor)]
        if word in _MODULE_TEXT:
            directive = self._text_directive(cursor)
            names = [name.strip() for name in directive.text.split(",")]
            if word == "pragma" and set(names) != {_MODULE_PRAGMA}:
                other = next(name for name in names if name != _MODULE_PRAGMA)
                self.source.fail(
                    f"of pragmas only {_MODULE_PRAGMA} can stand at module level, got {other}",
                    start,
                )
            if word == "alias" and len(set(names)) < len(names):
                self.source.fail(f"'.alias' gives '{names[0]}' its own name", start)
            return [directive]
        linkage: tuple[str, ...] = ()
        if word in _LINKAGE:
            linkage = (word,)
            cursor.advance()
            word = cursor.text[1:]
            if word not in (*SPACES, "entry", "func"):
                cursor.fail(
                    f"expected '.entry', '.func' or a state space after '.{linkage[0]}',"
                    f" got {cursor.shown()}"
                )
            if linkage == ("common",) and word != "global":
                cursor.fail(f"'.common' is of '.global' variables, got {cursor.shown()}")
        if word in ("entry", "func"):
            return [self._function(cursor, linkage, start)]
        if word == "param":
            cursor.fail("'.param' cannot stand at module level: expected '.entry' or '.func'")
        if word == "local":
            cursor.fail(
                "'.local' cannot stand at module level: local memory belongs to a function",
                "declare it in the function that uses it",
            )
        return parse_variables(cursor, linkage)

    def _directive_word(self, cursor: Cursor, known: tuple[str, ...], place: str) -> str:
        if not cursor.at("dotted"):
            outside = cursor.text == "}" or cursor.at("name")
            hint = "look for a '}' too many before it" if outside else ""
            cursor.fail(f"expected a directive {place}, got {cursor.shown()}", hint)
        word = cursor.text[1:]
        if word not in known:
            near = closest(word, known)
            cursor.fail(
                f"unknown directive '.{word}' {place}", f"did you mean '.{near}'?" if near else ""
            )
        return word

    # --- directives kept as text -----------------------------------------------------------------

    def _directive(self, cursor: Cursor, text_start: int, text_end: int, end: int) -> Directive:
        text = _TRAILING_BLANKS.sub("\n", self.source.code[text_start:text_end].strip())
        directive = Directive(self.source.locate(cursor.start), cursor.text[1:], text)
        cursor.seek(end)
        cursor.previous_end = end
        return directive

    def _text_directive(self, cursor: Cursor) -> Directive:
        match = _DIRECTIVE_TEXTS[cursor.text[1:]].match(self.source.code, cursor.end)
        if match is None:
            self._fail_text_directive(cursor)
        return self._directive(cursor, *match.span(), match.end() + 1)

    def _fail_text_directive(self, cursor: Cursor) -> NoReturn:
        name = cursor.take()
        wanted = "string" if name == ".pragma" else "name"
        if name != ".callprototype":
            while cursor.at(wanted):
                cursor.advance()
                if not cursor.accept(","):
                    cursor.fail_missing_semicolon(f"after '{name}'")
            cursor.fail(f"expected a {wanted} after '{name}', got {cursor.shown()}")
        while not cursor.at("end") and cursor.text not in ("{", "}", "@", ";"):
            cursor.advance()
        cursor.fail_missing_semicolon(f"after '{name}'")

    def _line_directive(self, cursor: Cursor) -> Directive:
        match = _LINE_REST.match(self.source.code, cursor.end)
        assert match is not None
        return self._directive(cursor, *match.span(), match.end())

    def _section(self, cursor: Cursor) -> Directive:
        code = self.source.code
        opening = code.find("{", cursor.end)
        closing = code.find("}", cursor.end)
        if opening < 0:
            cursor.fail("expected '{' after '.section', got the end of the file")
        if closing < 0:
            self.source.fail(
                "unclosed '{': expected '}' before the end of the file",
                opening,
                "close the section with '}'",
            )
        strange = _NO_SECTION.search(code, opening + 1, closing)
        if strange is not None:
            line = self.source.locate(opening).line
            self.source.fail(
                f"expected '}}' to close the section of line {line} before '{strange[0]}'",
                strange.start(),
                "a section holds .b8, .b16, .b32 and .b64 with numbers and labels",
            )
        return self._directive(cursor, cursor.end, closing + 1, closing + 1)

    # --- functions -------------------------------------------------------------------------------

    def _function(self, cursor: Cursor, linkage: tuple[str, ...], start: int) -> Function:
        kind = cursor.take()[1:]
        returns: tuple[Variable, ...] = ()
        if kind == "func" and cursor.text == "(":
            returns = parse_parameters(cursor)
        if cursor.text[1:] in _PERFORMANCE:
            cursor.fail(f"'{cursor.text}' cannot stand before the name: it follows the parameters")
        name = declared_name(cursor, f"'.{kind}'")
        params = parse_parameters(cursor, kind) if cursor.text == "(" else ()
        place = cursor.start
        directives = self._performance(cursor, kind)
        if returns and ("noreturn", ()) in directives:
            self.source.fail(f"'{name}' returns a value: it cannot be '.noreturn'", place)
        pragmas: list[Directive] = []
        while cursor.text == ".pragma":
            pragmas.append(self._text_directive(cursor))
            directives += self._performance(cursor, kind)
        body = None
        if cursor.text == "{":
            place = cursor.start
            statements, end = self._statements(place, cursor.end)
            body = Block(self.source.locate(place), statements)
            cursor.seek(end)
        elif not cursor.accept(";"):
            cursor.fail(f"expected '{{' or ';' after the header of '{name}', got {cursor.shown()}")
        return Function(
            self.source.locate(start), kind, name, linkage, returns, params, tuple(directives), body, tuple(pragmas)
        )  # fmt: skip

    def _performance(self, cursor: Cursor, kind: str) -> list[tuple[str, tuple[int, ...]]]:
        directives: list[tuple[str, tuple[int, ...]]] = []
        while cursor.at("dotted") and cursor.text != ".pragma":
            word = self._directive_word(cursor, tuple(_PERFORMANCE), "in a function header")
            start = cursor.start
            since = _SINCE.get(word, self.version)
            if kind == "entry" and word in _FUNCTIONS_ONLY:
                self.source.fail(f"'.{word}' is of '.func' functions, not of an '.entry'", start)
            if kind == "func" and word not in _FUNCTIONS_ONLY:
                self.source.fail(f"'.{word}' is of an '.entry', not of '.func' functions", start)
            if self.version < since:
                needed, got = (f"{major}.{minor}" for major, minor in (since, self.version))
                self.source.fail(f"'.{word}' needs .version {needed} or later, got {got}", start)
            cursor.advance()
            numbers: list[int] = []
            if cursor.at("number") or cursor.text == "WARP_SZ":
                numbers.append(integer(cursor, f"a number of '.{word}'"))
                while cursor.accept(","):
                    numbers.append(integer(cursor, f"a number of '.{word}'"))
            least, most = _PERFORMANCE[word]
            if not least <= len(numbers) <= most:
                wanted = f"{least}" if least == most else f"{least} to {most}"
                self.source.fail(
                    f"'.{word}' takes {wanted} number{'s' * (most != 1)}, got {len(numbers)}", start
                )
            if word in _POSITIVE and min(numbers) < 1:
                self.source.fail(f"'.{word}' takes positive numbers, got {min(numbers)}", start)
            directives.append((word, tuple(numbers)))
            given = {name for name, _ in directives}
            for pair in _EXCLUSIVE:
                if given.issuperset(pair):
                    self.source.fail(f"'.{pair[0]}' and '.{pair[1]}' exclude each other", start)
        return directives

    # --- bodies ----------------------------------------------------------------------------------

    def _statements(
        self, opening: int, position: int, depth: int = 1
    ) -> tuple[tuple[Statement, ...], int]:
        check_depth(depth, self.source, opening, "blocks", "leave out braces that hold no names")
        code, locate, match_at = self.source.code, self.source.locate, _STATEMENT.match
        read, opcodes = self.operands.read, self.opcodes
        statements: list[Statement] = []
        while True:
            match = match_at(code, position)
            if match is None:
                position = self._other_statement(opening, position, statements)
                continue
            position = match.end()
            kind = match.lastgroup
            if kind == "operands":
                opcode = match["opcode"]
                words = opcodes.get(opcode)
                if words is None:
                    words = opcodes[opcode] = tuple("".join(opcode.split()).split("."))
                operands = read(match["operands"], match.start("operands"), opcode)
                guard = None
                start = match.start("opcode")
                if match["guard"] is not None:
                    guard = Guard(Name(match["guard"]), match["negated"] == "!")
                    start = code.rfind("@", 0, match.start("guard"))
                statements.append(Instruction(locate(start), guard, words, operands))
            elif kind == "label":
                statements.append(Label(locate(match.start("label")), match["label"]))
            elif kind == "rest":
                loc = SourceLoc(int(match["file"]), int(match["line"]), int(match["column"]))
                start = code.rfind(".", 0, match.start("file"))
                statements.append(LocDirective(locate(start), loc, match["rest"].strip()))
            elif kind == "open":
                inner, position = self._statements(match.start("open"), position, depth + 1)
                statements.append(Block(locate(match.start("open")), inner))
            else:
                return tuple(statements), position

    def _other_statement(self, opening: int, position: int, statements: list[Statement]) -> int:
        simple = simple_declaration(self.source, position)
        if simple is not None:
            statements.append(simple[0])
            return simple[1]
        cursor = Cursor(self.source, position)
        if not cursor.at("dotted"):
            self._fail_statement(cursor, opening)
        if cursor.text[1:] in (*_LINKAGE, "entry", "func", "version"):
            line = self.source.locate(opening).line
            cursor.fail(
                f"'{cursor.text}' cannot stand inside a function body: expected '}}'"
                f" to close '{{' of line {line}",
                "close the body with '}' before it",
            )
        word = self._directive_word(cursor, _BODY_WORDS, "in a function body")
        if word == "reg":
            statements.append(parse_registers(cursor))
        elif word in SPACES:
            statements.extend(parse_variables(cursor))
        elif word in _BODY_TEXT:
            statements.append(self._text_directive(cursor))
        elif word == "section":
            statements.append(self._section(cursor))
        elif word == "file":
            statements.append(self._line_directive(cursor))
        else:
            cursor.fail("bad '.loc': expected file, line and column numbers after it")
        return cursor.previous_end

    def _fail_statement(self, cursor: Cursor, opening: int) -> NoReturn:
        if cursor.at("end"):
            self.source.fail(
                "unclosed '{': expected '}' before the end of the file",
                opening,
                "close it with '}'",
            )
        if cursor.text == ";":
            cursor.fail(
                "expected a statement, got ';'", "delete the ';': PTX has no empty statement"
            )
        what = "an instruction, a label, a directive or '}'"
        if cursor.accept("@"):
            cursor.accept("!")
            if not cursor.at("name"):
                cursor.fail(f"expected a predicate register after '@', got {cursor.shown()}")
            guard = cursor.take()
            what = f"an instruction after '@{guard}'"
        if cursor.at("name") and cursor.text[0].isalpha() and "$" not in cursor.text:
            opcode = cursor.take()
            while cursor.at("dotted") and cursor.start == cursor.previous_end:
                opcode += cursor.take()
            while not cursor.at("end"):
                cursor.advance()
            cursor.fail_missing_semicolon(f"after '{opcode}'")
        cursor.fail(f"expected {what}, got {cursor.shown()}")
