"""What is said of code without black is what black does: random statements, blank lines at random."""

from __future__ import annotations

import random

import black
import pytest

from tl2npu.source.layout_plain import is_loose, is_plain
from tl2npu.source.layout_units import cut, foretold

MODE = black.Mode()
ATOMS = [
    "a",
    "b2",
    "x.y",
    "T.float16",
    "None",
    "True",
    "1",
    "0.5",
    "1e-5",
    '"s"',
    '"a, b"',
    '"x = (1)"',
    """f"{a['b']:>{b}} # c\'" """.strip(),
    r'"a\n"',
    "...",
]
BINARY = " + | - | * | / | // | % | @ | << | == | < | and | or | is | in |*|**| ** | & ".split("|")


class Grammar:
    """Statements that may or may not be as black writes them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def some(self, one: object, depth: int, most: int = 3) -> list[str]:
        return [one(depth) for _ in range(self.random.randint(1, most))]  # type: ignore[operator]

    def expression(self, depth: int) -> str:
        if depth < 1 or self.random.random() < 0.25:
            return self.pick(*ATOMS)
        part, other = self.expression(depth - 1), self.expression(depth - 1)
        subscript, arguments = (
            ", ".join(self.some(self.slice, depth - 1)),
            ", ".join(self.some(self.argument, depth - 1)),
        )
        return self.pick(
            *[part + self.pick(*BINARY) + other] * 5,
            *[f"{self.pick('f', 'T.copy', 'print')}({arguments})"] * 3,
            *[f"{self.pick('a', 'x.y')}[{subscript}]"] * 3,
            *[f"({part})", f"({part})", f"({part}, {other})", f"({part},)", f"[{part}]", f"[{part}, {other}]"],
            *[f"-{part}", f"not {part}", f"{part} if {other} else b", f"{part}.float()", f"{{{part}: {other}}}"],
            f"{part} for i in {other}",
        )

    def slice(self, depth: int) -> str:
        part, other = self.expression(depth), self.expression(depth)
        return self.pick(
            part, part, ":", f"{part}:{other}", f"{part} : {other}", f"{part}:", f"{part} :", f":{part}", f": {part}"
        )

    def argument(self, depth: int) -> str:
        part = self.expression(depth)
        return self.pick(part, part, part, f"k={part}", f"k={part}", f"k = {part}", f"*{part}", f"**{part}")

    def parameter(self, depth: int) -> str:
        default = self.pick("", "", " = ", "=")
        kind = self.pick("", ": " + self.expression(depth))
        return self.pick("a", "b", "*args", "*") + kind + (default and default + self.expression(depth))

    def statement(self, depth: int) -> str:
        part = self.expression(depth)
        items = "".join(f"    {item},\n" for item in self.some(self.argument, depth))
        pairs = "".join(f"    {self.expression(depth)}: {self.expression(depth)},\n" for _ in range(2))
        nested = "    k={\n" + pairs.replace("    ", "        ") + "    },\n"
        parameters = self.some(self.parameter, depth)
        decorated = self.pick("", f"@f({self.argument(depth)})\n", f"@f(\n{items})\n", f"@f(\n{items}{nested})\n")
        return self.pick(
            f"{part}\n",
            f"{part}{self.pick('  # c', ' # c', '  #c', '  # c  d')}\n",
            f"f(\n    a,{self.pick('  # c', '  # type: ignore', '  # c → c')}\n{items})\n",
            f"{self.pick('a', 'x.y', 'a, b', '(a, b)')}{self.pick(' = ', ' += ', '=')}{part}\n",
            f"return {part}\n",
            f"{self.pick('if', 'while', 'for i in', 'for i, in', 'with')} {part}:\n",
            f"with {part} as {self.pick('(a, b)', 'c', '(c)')}:\n",
            f"{decorated}def f({', '.join(parameters)}){self.pick('', ' -> x')}:\n",
            decorated + "def f(\n" + "".join(f"    {one},\n" for one in parameters) + "):\n",
            f"{self.pick('x = ', '', 'x.y = ', 'return ')}f(\n{items}{self.pick('', nested)})\n",
            f"x = {{\n{pairs}}}\n",
            f"{self.pick('a', 'else')}: {part}{self.pick('', ' = b', '=b')}\n",
        )

    def disturbed(self, text: str) -> str:
        at = self.random.randrange(4 * len(text))
        return text[:at] + self.pick(" ", "", ",", "(", "=", "-") + text[at + 1 :]

    def block(self, indent: str, depth: int) -> str:
        """Plain statements with blank lines at random."""
        lines = []
        for _ in range(self.random.randint(1, 4)):
            lines += [""] * self.random.choice([0, 0, 0, 1, 1, 2, 2, 3])
            lines += [indent + "# c"] if self.random.random() < 0.2 else []
            lines += [""] if self.random.random() < 0.05 else []
            if depth < 3 and self.random.random() < 0.5:
                head = self.pick("def f():", "@x\ndef f(a):", "if x:", "for i in x:", "with x:", "class A:", "if y:")
                lines += [indent + line for line in head.split("\n")]
                lines.append(self.block(indent + "    ", depth + 1))
                if head == "if y:":
                    lines += [indent + self.pick("else:", "elif z:"), self.block(indent + "    ", depth + 1)]
            else:
                lines.append(
                    indent + self.pick("import x", "from x import y", "x = 1", "f(a)", '"""Doc."""', "return f")
                )
        return "\n".join(lines)


def parses(text: str) -> bool:
    inside = "".join(f"    {line}\n" for line in text.split("\n"))
    try:
        compile(f"def g():\n  for _ in a:\n{inside}" + "        pass\n" * text.endswith(":\n"), "", "exec")
    except (SyntaxError, ValueError):  # the latter for `f"{a:{b=}}"`, a mistake of CPython 3.12.3
        return False
    return True


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", range(2))
def test_what_is_said_of_code_holds(seed: int) -> None:
    grammar = Grammar(seed)
    plain = loose = 0
    for _ in range(4000):
        text = grammar.disturbed(grammar.statement(grammar.random.randint(0, 2)))
        if text[0] == " " or not parses(text) or not (is_plain(text, 80) or is_loose(text)):
            continue
        body = "".join(f"    {line}\n" for line in text.split("\n")[:-1]) + "        pass\n" * text.endswith(":\n")
        try:
            unchanged = black.format_str("def g():\n" + body, mode=MODE) == "def g():\n" + body
        except black.InvalidInput:
            continue
        assert not is_plain(text, 80) or unchanged, text
        assert not is_loose(text) or not unchanged, text
        plain += is_plain(text, 80)
        loose += is_loose(text)
    assert plain > 150
    assert loose > 10


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_blank_lines_holds(seed: int) -> None:
    grammar = Grammar(seed)
    told = all_units = 0
    for _ in range(100):
        text = grammar.block("", 0) + "\n"
        formatted = black.format_str(text, mode=MODE)
        before, after = cut(text), cut(formatted)
        assert len(before) == len(after)
        for number, unit in enumerate(after):
            expected = foretold(before, number, 88)
            assert expected is None or expected == unit.text, "".join(one.text for one in before[: number + 1])[-300:]
            told += expected is not None
            all_units += 1
    assert told > 0.6 * all_units
