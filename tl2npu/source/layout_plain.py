"""Code that black certainly leaves as it is, or certainly changes, told by its text alone.

Most statements of a kernel are ordinary: a call, an assignment, the head of a loop or of a function. To find that black
has nothing to say on them should not cost a parse by black. What is called plain here is what surely stays; anything
out of the ordinary is not: parentheses that might be redundant, quotes in strings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from keyword import iskeyword

_NUMBER = r"\d+(?:\.\d+)?(?:e-?\d+)?"
_WORD = r"(?:[A-Za-z_]\w*|\d+)"
_SIMPLE = r"(?:[A-Za-z_]\w*|\d+(?:\.\d+)?)"
_PARTS = re.compile(
    rf"""(?:
      (?:^|(?<=[(\[=])|(?<=[-+*/%,=]\ )){_SIMPLE}\*\*-?
        (?:\d+(?:\.\d+)?(?![\w.(\[])|[A-Za-z_]\w*(?=[)\],]|\ [-+*/%]|$))
    | (?<!\w)[A-Za-z_]\w*(?!\w)
    | (?<![\w.]){_NUMBER}(?![\w.])
    | (?<!\w)""(?!\w)
    | \.(?=[A-Za-z_])
    | (?:(?<=\[)|(?<=,\ ))\.\.\.(?:,\ (?=[\w:])|(?=\]))
    | (?<=[\w)\]"])\ (?:[-+*/%<>&|@]|//|<=|>=|==|!=|<<|>>)\ (?=[\w("\[-])
    | (?<=[)\]])\ \*\*\ (?=[\w(-])
    | (?<=[\w)\]"]),\ (?=[\w("\[*-])
    | (?<=[\w)\]"])\ (?=[\w"])
    | (?<=return)\ (?=\()
    | (?<=[\w)\]])\((?=[^\s,])
    | (?:(?<=[(\[=])|(?<=,\ ))\({_WORD}(?:\ (?:[-+*%]|//)\ {_WORD})*,\)
    | (?<=\ as)\ \(\w+(?:,\ \w+)*\)(?=:$)
    | (?:^|(?<=[(\[=-])|(?<=\ =\ )|(?<=return\ )|(?<=[-+*/%<>&|,@:]\ ))\((?=[^\s,])
    | (?<=[\w)\]])\[(?=[^\s,])
    | (?:^|(?<=[(\[=]))\[(?=[^\s,])
    | (?<=[,=]\ )\[(?=[^\s,])
    | (?<=[\w)\]])\ :(?:\ (?=[\w(])|(?=[\],]))
    | (?<=\w):(?=[\w\],-])
    | (?:(?<=\[)|(?<=,\ )):(?:\ (?=[\w(])|(?=[\w\],-]))
    | (?<=:)-(?=\w)
    | (?<=:)(?:,\ (?=[\w("\[:-])|\])
    | (?<=[\w)\]]),\ (?=:)
    | (?:^|(?<=[(=]))\{{(?=[\w"])
    | (?<=[\w)\]"]):\ (?=[\w"])
    | (?<=[^\s,])[)\]}}]
    | (?<=[\w)\]])\ (?:[-+*/]|//)?=\ (?=[\w"(\[-])
    | (?<=\w)=(?=[\w"(\[-])
    | (?:^|(?<=[(\[=])|(?<=[-+*/%<>&|,=@]\ ))-(?=[\w(])
    | (?:(?<=\()|(?<=,\ ))\*{{1,2}}(?=[A-Za-z_])
    )+:?""",
    re.VERBOSE,
)
_STRING = re.compile(r"""(?<!\w)f?"(?:[^"\\\n]|\\[nrt0])*\"""")
_REMARK = re.compile(r"  # (?!type:|fmt:|noqa|pylint:|pragma:|isort:|yapf:)\S.*(?<=\S)$|(?<=,)  # type: ignore$")
_KEYWORD_CALL = re.compile(r"\b(?:and|as|assert|elif|else|for|if|in|is|not|or|return|while|with)[(\[]")
_UNUSUAL = re.compile(
    r"\b(?:async|await|class|def|del|from|global|import|lambda|match|nonlocal|yield)\b|\bprint\b(?!\()|, in\b"
)
_OPERATION = re.compile(r" (?:[-+*/%]|//) ")
_DOUBTFUL = re.compile(r"(?:^| = |return |\[|: )\(")
_USED = re.compile(r"[.\[(]| (?:[-+*/%@&|]|//|\*\*) ")
_USED_IN_LIST = re.compile(r"[.\[(,]| (?:[-+*/%@&|]|//|\*\*) | :")
_IMPORT = re.compile(r"(?:import [\w.]+(?: as \w+)?|from \.*\w[\w.]* import \w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)")
_DOCSTRING = re.compile(r'"""[^\s"\\](?:[^"\\\t]*[^\s"\\])?"""')
_DECORATOR = re.compile(r"@([A-Za-z_][\w.]*)(\(.*\))?")
_HEAD = re.compile(r"def \w+\((.*)\)(?: -> ([A-Za-z_][\w.]*))?:")
_OPENING = re.compile(r"(?:def \w+|(?:\w+ = |return |@)?[A-Za-z_][\w.]*)\(|\w+ = \{")
_NESTED = re.compile(r"(?:\w+=)?\{")
_CLOSING = {"(": ")", "{": "}"}
_KEYWORD = re.compile(r"^[A-Za-z_]\w*=(?=[^=])")
_PARAMETER = re.compile(r"(\*{0,2}\w+)(?:(: )(.*?)(?: = (.*))?|=(.*))?|\*")
_LOOSE = re.compile(
    r"""\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[#][^\n]*"""
    r"""|(?P<loose>,(?=[\w"'(\[{*-])|(?<=[\w)\]])(?:[*/%]|//)(?=[\w(])|(?<=[(\[])[ ](?=\S))""",
    re.DOTALL,
)


def is_plain(text: str, line_length: int) -> bool:
    """True for one statement or head, below comments or blank lines, whose code black leaves alone.

    Blank lines are not judged: how many black wants depends on what stands above.
    """
    lines = text.lstrip("\n").split("\n")
    if lines.pop():
        return False  # no line end
    first = 0
    while first < len(lines) and lines[first].lstrip(" ")[:1] == "#":
        first += 1
    if first == len(lines) or not all(_widest(line) <= line_length for line in lines[first:]):
        return False
    if not all(_is_comment(line, lines[first]) for line in lines[:first]):
        return False
    indent = len(lines[first]) - len(lines[first].lstrip(" "))
    code = [_REMARK.sub("", _STRING.sub('""', line)) if '"""' not in line else line for line in lines[first:]]
    if any(line[:indent].strip(" ") or not line.isascii() for line in code):
        return False
    return _is_plain_code([line[indent:] for line in code], bool(first))


def _widest(line: str) -> int:
    return len(line) if line.isascii() else 2 * len(line)


def is_loose(text: str) -> bool:
    """True for code that black certainly changes: no space behind a comma, or around an operator, for example."""
    return any(found.lastgroup == "loose" for found in _LOOSE.finditer(text))


def _is_plain_code(lines: list[str], commented: bool) -> bool:
    """``commented``: below a comment, where blank lines around decorators and functions are hard to foretell."""
    start = lines[0]
    if len(lines) == 1 and not start.startswith(("@", "def ")):
        if _IMPORT.fullmatch(start) or _DOCSTRING.fullmatch(start):
            return True
        return _is_plain_line(start) or (": " in start and _is_annotated(start))
    if start.startswith(("@", "def ")) and commented:
        return False
    while lines[0].startswith("@"):
        stop = next((at for at, line in enumerate(lines, 1) if line[-1:] == ")" and line[:1] in "@)"), 1)
        if lines[0].endswith("(") and stop > 1:
            if not _is_exploded(lines[:stop]):
                return False
        else:
            stop = 1
            found = _DECORATOR.fullmatch(lines[0])
            if not found or not _is_plain_line(lines[0][1:]):
                return False
        lines = lines[stop:]
        if not lines:
            return False
    if len(lines) > 1:
        return _is_exploded(lines)
    head = _HEAD.fullmatch(lines[0])
    if head is None or not head[1]:
        return head is not None
    parameters = _items(head[1])
    return ", ".join(parameters) == head[1] and all(map(_is_parameter, parameters))


def _is_plain_line(line: str) -> bool:
    if not line or line[0] in " \"'" or not _PARTS.fullmatch(line) or _KEYWORD_CALL.search(line):
        return False
    return (
        not _UNUSUAL.search(line)
        and _equal_signs_fit(line)
        and _slices_fit(line)
        and _signs_fit(line)
        and not any(_is_redundant(line, found.end() - 1) for found in _DOUBTFUL.finditer(line))
    )


def _is_expression(text: str) -> bool:
    return text == '""' or (text[-1:] != ":" and " = " not in text and _is_plain_line(text))


def _is_exploded(lines: Sequence[str], opening: re.Pattern[str] = _OPENING) -> bool:
    """A call, a dict or the head of a function with one item on each line, and a comma after the last."""
    start, *items, end = lines
    if not items or not opening.fullmatch(start) or _KEYWORD_CALL.search(start):
        return False
    defines = start.startswith("def ")
    if end != _CLOSING[start[-1]] + ":" * defines or _UNUSUAL.search(start.removeprefix("def ")):
        return False
    at = 0
    while at < len(items):
        line = items[at]
        if line[:4] != "    " or line[4:5] in (" ", "*"):
            return False
        stop = at + 1
        if line[-1] == "{" and not defines:
            stop += next((count for count, below in enumerate(items[stop:], 1) if below[4:5] != " "), 0)
            inside = [below.removeprefix("    ") for below in items[at : stop - 1]]
            if items[stop - 1] != "    }," or not _is_exploded([*inside, "}"], _NESTED):
                return False
        elif line[-1] != "," or not _is_item(line[4:-1], start):
            return False
        at = stop
    return True


def _is_item(item: str, start: str) -> bool:
    """``start``: the line that opens the brackets."""
    if len(_items(item)) != 1:
        return False
    if start.startswith("def "):
        return _is_parameter(item)
    if start[-1] != "{":
        return _is_expression(_KEYWORD.sub("", item, count=1))
    key, colon, value = item.partition(": ")
    return bool(colon) and _is_expression(key) and _is_expression(value)


def _is_annotated(line: str) -> bool:
    name, _, _ = line.partition(": ")
    return name.isidentifier() and not iskeyword(name) and _is_parameter(line)


def _is_parameter(text: str) -> bool:
    found = _PARAMETER.fullmatch(text)
    if found is None:
        return False
    return all(part is None or (_is_balanced(part) and _is_expression(part)) for part in found.group(3, 4, 5))


def _is_balanced(text: str) -> bool:
    return all(text.count(opening) == text.count(closing) for opening, closing in ("()", "[]", "{}"))


def _items(text: str) -> list[str]:
    """What commas outside of all brackets separate."""
    found, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and not depth:
            found.append(text[start:at])
            start = at + 2
    return [*found, text[start:]]


def _is_redundant(line: str, opening: int) -> bool:
    """Whether black might take off the parentheses that open here, since nothing is done with what they hold."""
    depth = 0
    for at in range(opening, len(line)):
        depth += (line[at] in "([{") - (line[at] in ")]}")
        if not depth:
            behind = line[at + 1 :]
            above = line[opening - 1 : opening]
            if not behind and above == " ":
                return len(_items(line[opening + 1 : at])) == 1  # else a tuple
            return not (_USED_IN_LIST if above == "[" else _USED).match(behind)
    return True


def _signs_fit(line: str) -> bool:
    """No sign before a power, which would get parentheses around it."""
    return " ** " not in line or (line.count(" ** ") == 1 and "-" not in re.sub(r" - |\*\* -|-(?=\d)", "", line))


def _slices_fit(line: str) -> bool:
    """Spaces around colons; those of a slice have some only where a part of it is no plain name or number."""
    if ":" not in line[:-1]:
        return True
    opened: list[int] = []
    for at, character in enumerate(line):
        if character in "([{":
            opened.append(at)
        elif character in ")]}" and opened:
            start = opened.pop()
            if character == "]" and not all(map(_slice_fits, _items(line[start + 1 : at]))):
                return False
        elif character == ":" and at < len(line) - 1:
            around = line[opened[-1]] if opened else ""
            if around != "[" and (around != "{" or line[at - 1] == " " or line[at + 1] != " "):
                return False
    return True


def _slice_fits(part: str) -> bool:
    """One part of a subscript, whose own parts are in order."""
    outside, depth = "", 0
    for character in part:
        depth -= character in ")]}"
        if not depth:
            outside += character
        depth += character in "([{"
    if ":" not in outside or part == ":":
        return True
    if (
        outside.count(":") > 1
        or "." in re.sub(r"\d\.\d", "", outside)
        or re.search(r"\b(?:if|or|and|not|in|is)\b", part)
    ):
        return False
    called = re.search(r"[\w)\]][(\[]", part)
    if "**" in outside:
        return False
    if called or _OPERATION.search(part):
        return bool(re.search(r"(?:^| ):(?: |$)", outside))
    return "(" not in part and " " not in part


def _is_comment(line: str, below: str) -> bool:
    indent = len(below) - len(below.lstrip(" "))
    return (
        line[: indent + 2] in (" " * indent + "# ", " " * indent + "##")
        and line[-1:].strip() != ""
        and "\t" not in line
    )


def _equal_signs_fit(line: str) -> bool:
    """Spaces around ``=`` outside of brackets and none inside; no walrus, no comparison is looked at."""
    depth = 0
    for at, character in enumerate(line):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "=" and line[at - 1] not in "=<>!":
            behind = line[at + 1 : at + 2]
            if behind != "=" and (depth > 0) == (behind == " "):
                return False
    return True
