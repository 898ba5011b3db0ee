"""Which statements of a file black must see, when only some of them changed.

Black lays out one logical line at a time, and the blank lines above it by what stands right before. So a text is cut
into units (a simple statement, the head of a compound one, each with the lines above it), and black gets those that
are new, each with the unit before it and the heads of the blocks around it; all others are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

_PLAIN_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With, ast.For, ast.While, ast.If)
_WORD = re.compile(r"^[ \t]*(?:[rRbBuUfF]{1,2}(?=[\"']))?(\w+|[^\s#\w])", re.MULTILINE)
_FIRST = re.compile(r"^([ \t]*)[^\s#]", re.MULTILINE)  # line of code
_FUNCTION = re.compile(r"^[ \t]*def\b", re.MULTILINE)
# What black leaves alone if it fits on the line: strings are taken for a number, then each pair of brackets, the
# innermost first, is taken away (the groups: for a number), and the rest must be a statement.
_STRING = re.compile(r'(?<!\w)"[^"\\\n]*"')
_NAME = r"(?!(?:return|not|yield|del|await|assert|raise|lambda)\b)[A-Za-z_]\w*"
_TERM = rf"-?(?:{_NAME}(?:\.{_NAME})*|\d+(?:\.\d+)?(?:e-?\d+)?)"
_SIGN = r" (?:[-+*/%&|<>@]|//|<<|>>|[<>=!]=) "
_SUM, _VALUE = rf"{_TERM}(?:{_SIGN}{_TERM})+", rf"{_TERM}(?:{_SIGN}{_TERM})*"
_GIVEN = rf"(?:{_NAME}=)?{_VALUE}"
_BRACKETS = re.compile(
    rf"(?<=\w)(?:\((?:{_GIVEN}(?:, {_GIVEN})*)?\)|\[{_VALUE}(?:, {_VALUE})*\])"
    rf"|(?:(?<=[(=])|(?<=, ))(?:(\()(?:{_VALUE}(?:, {_VALUE})+|{_VALUE},)\)|(\[){_VALUE}(?:, {_VALUE})*\])"
    rf"|(?<= [-+*/%@] )(\(){_VALUE}\)"
    rf"|(?:(?<=[\[(])|(?<=, )|(?<= [=:] ))(\(){_VALUE}\)(?= [-+*/%@] )"
    rf"|(?:(?<=\[)|(?<=, ))()(?:{_SUM} : {_VALUE}|{_TERM} : {_SUM})(?=[,\]])"
)
_SLICE = re.compile(rf"(?:(?<=\[)|(?<=, ))(?:{_NAME}|\d+)?:(?:{_NAME}|\d+)?(?=[,\]])")
_PLAIN = re.compile(
    rf"\n? *(?:(?!\d)(?:{_TERM} [-+*/]?= )?{_VALUE}|{_NAME}(?:, {_NAME})+ = {_VALUE}(?:, {_VALUE})*"
    rf"|return {_VALUE}(?:, {_VALUE})*|assert {_VALUE}(?:, {_VALUE})?|(?:if|while) {_VALUE}:|else:"
    rf"|for {_NAME}(?:, {_NAME})* in {_VALUE}:|with {_VALUE}(?: as (?:{_NAME}|\({_NAME}(?:, {_NAME})+\)))?:)\n"
)
_FLOW = ("with", "for", "while", "if", "elif", "else")
_SPECIAL = frozenset("import from class def async try match \" ' @".split())


@dataclass(frozen=True)
class Unit:
    """Some lines; ``needs``: units before it without which these lines would be no program; ``opens``: a block.

    ``blocks``: the heads of the blocks that it stands in, outermost first.
    """

    text: str
    needs: tuple[int, ...] = ()
    opens: bool = False
    blocks: tuple[int, ...] = ()

    @property
    def depth(self) -> int:
        """How many blocks it stands in."""
        return len(self.blocks)


@dataclass(eq=False)
class _Cutter:
    lines: list[str]
    units: list[Unit] = field(default_factory=list)
    cursor: int = 0

    def take(self, stop: int, needs: tuple[int, ...], blocks: tuple[int, ...], opens: bool = False) -> int:
        """The lines up to ``stop`` as the next unit; its number."""
        self.units.append(Unit("".join(self.lines[self.cursor : stop]), needs, opens, blocks))
        self.cursor = max(stop, self.cursor)
        return len(self.units) - 1

    def block(self, statements: Sequence[ast.stmt], needs: tuple[int, ...], blocks: tuple[int, ...]) -> None:
        for statement, following in zip(statements, [*statements[1:], None], strict=False):
            last = statement.end_lineno or statement.lineno
            if following is not None and _first_line(following) <= last:
                continue  # `a; b`
            if self.cursor < last:
                self.statement(statement, last, needs, blocks)

    def statement(self, statement: ast.stmt, last: int, needs: tuple[int, ...], blocks: tuple[int, ...]) -> None:
        orelse = getattr(statement, "orelse", [])
        if not isinstance(statement, _PLAIN_BLOCKS) or (orelse and not isinstance(statement, ast.If)):
            self.take(last, needs, blocks)
            return
        body_start = _first_line(statement.body[0])
        if body_start <= statement.lineno or (orelse and _first_line(orelse[0]) <= (_last_line(statement.body))):
            self.take(last, needs, blocks)  # everything on one line
            return
        head = self.take(self._head_end(body_start), needs, blocks, opens=True)
        self.block(statement.body, (*needs, head), (*blocks, head))
        if not orelse:
            return
        inside = tuple(dict.fromkeys((*needs, head, len(self.units) - 1, *self.units[-1].needs)))
        start = _first_line(orelse[0])
        is_elif = isinstance(orelse[0], ast.If) and self.lines[start - 1].lstrip().startswith("elif")
        if is_elif:
            self.statement(orelse[0], last, inside, blocks)
        else:
            head = self.take(self._head_end(start), inside, blocks, opens=True)
            self.block(orelse, (*inside, head), (*blocks, head))

    def _head_end(self, body_start: int) -> int:
        """Comments above the first statement of a block belong to that statement."""
        stop = body_start - 1
        while stop - 1 > self.cursor and self.lines[stop - 1].lstrip()[:1] in ("", "#"):
            stop -= 1
        return stop


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _last_line(statements: Sequence[ast.stmt]) -> int:
    return statements[-1].end_lineno or statements[-1].lineno


def cut(text: str, python: ast.Module | None = None) -> list[Unit]:
    """The units of a text with line ends ``\\n``, in order; what follows the last statement is the last one."""
    cutter = _Cutter([line + "\n" for line in text.split("\n")])
    cutter.lines[-1] = cutter.lines[-1][:-1]
    cutter.block((python or ast.parse(text)).body, (), ())
    cutter.take(len(cutter.lines), (), ())
    return cutter.units


def new_in(units: Sequence[Unit], other: Sequence[Unit]) -> list[int]:
    """Numbers of the units that do not follow the same unit in another text."""
    known = set(_pairs(other))
    return [number for number, pair in enumerate(_pairs(units)) if pair not in known]


def _pairs(units: Sequence[Unit]) -> Iterable[tuple[str, str]]:
    texts = [unit.text for unit in units]
    return zip(["", *texts], texts, strict=False)


def is_certain(units: Sequence[Unit], number: int, line_length: int) -> bool:
    """True for a line of names, calls and operators that black leaves alone, with the blank lines above it."""
    above, unit = units[number - 1], units[number]
    line = unit.text.lstrip("\n")
    if number == 0 or len(line) > line_length + 1 or not line.isascii():
        return False
    if len(line) - len(line.lstrip(" ")) != 4 * unit.depth or (above.opens and line != unit.text):
        return False
    ended = {number - 1} if above.opens else {*above.blocks}.difference(unit.blocks)
    if any(_first_word(units[head].text) not in _FLOW for head in ended):
        return False
    if not above.opens and _first_word(above.text) in (*_SPECIAL, *_FLOW):
        return False
    text, found = _SLICE.sub("0", _STRING.sub("0", unit.text)), 1
    while found:
        text, found = _BRACKETS.subn(lambda brackets: "0" if brackets.lastindex else "", text)
    return _PLAIN.fullmatch(text) is not None


def laid_out(
    units: Sequence[Unit], numbers: Collection[int], format_text: Callable[[str], str]
) -> dict[int, str] | None:
    """The units of these numbers as ``format_text`` lays them out; None if its result does not fall into the units."""
    if not numbers:
        return {}
    wanted = set(numbers)
    for number in numbers:
        wanted.update(units[number].needs)
        if number:
            wanted.update((number - 1, *units[number - 1].needs))
    for number in range(len(units)):
        if number in wanted and units[number].opens:
            wanted.add(number + 1)  # no block may be empty
    chosen = sorted(wanted)
    above = {number - 1 for number in numbers}
    texts = [
        units[number].text if number in numbers else _stub(units[number], near=number in above) for number in chosen
    ]
    result = cut(format_text("".join(texts).lstrip("\n")))
    if len(result) != len(chosen) + (len(units) - 1 not in wanted):  # `cut` always makes a last unit
        return None
    return {number: result[at].text for at, number in enumerate(chosen) if number in numbers}


def _stub(unit: Unit, near: bool) -> str:
    """Something shorter in place of a unit that only has to be there; ``near``: blank lines below depend on it."""
    found = _FIRST.search(unit.text)
    if found is None:
        return unit.text
    blank = len(unit.text) - len(unit.text.lstrip("\n"))
    indent, word = "\n" * blank + found[1], _first_word(unit.text)
    if not unit.opens:
        return unit.text if word in _SPECIAL else f"{indent}pass\n"
    if word == "def" or (word == "@" and _FUNCTION.search(unit.text)):
        return f"{indent}def x():\n"
    if word not in ("with", "for", "while", "if"):
        return unit.text
    if near:
        return f"{indent}for x in x:\n" if word == "for" else f"{indent}{word} x:\n"
    return f"{indent}if x:\n"


def _first_word(text: str) -> str:
    """How a statement begins: a word, a quotation mark, ``@``."""
    found = _WORD.search(text)
    return found[1] if found else ""
