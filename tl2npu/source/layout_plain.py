"""Statements that black certainly leaves as they are, told by their text alone.

Most statements of a kernel are one short line: a call, an assignment, the head of a loop. To find that black has
nothing to say on them should not cost a parse by black. Anything out of the ordinary is no plain statement: slices,
comments behind code, powers, parentheses that might be redundant, quotes in strings.
"""

from __future__ import annotations

import re

_PARTS = re.compile(
    r"""(?:
      (?<!\w)[A-Za-z_]\w*(?!\w)
    | (?<![\w.])\d+(?:\.\d+)?(?![\w.])
    | (?<![\w])"[^"'\\{}\n]*"
    | \.(?=[A-Za-z_])
    | (?<=[\w)\]"])\ (?:[-+*/%<>&|]|//|<=|>=|==|!=|<<|>>)\ (?=[\w("\[])
    | (?<=[\w)\]"]),\ (?=[\w("\[-])
    | (?<=[\w)\]"])\ (?=[\w"])
    | (?<=[\w)\]])\((?=[^\s,])
    | (?<=[(\[=])\(\w+,\)
    | (?<=,\ )\(\w+,\)
    | (?<=\ as)\ \(\w+(?:,\ \w+)*\)(?=:$)
    | (?<=[(\[=])\((?=[^\s,])
    | (?<=[-+*/%<>&|,]\ )\((?=[^\s,])
    | (?<=[\w)\]])\[(?=[^\s,])
    | (?<=[(\[=])\[(?=[^\s,])
    | (?<=[,=]\ )\[(?=[^\s,])
    | (?<=[\w)\]])\ :(?:\ (?=[\w(])|(?=[\],]))
    | (?<=\[):(?=[\],])
    | (?<=,\ ):(?=[\],])
    | (?<=:)(?:,\ (?=[\w("\[:-])|\])
    | (?<=[\w)\]]),\ (?=:)
    | (?<=[^\s,])[)\]]
    | (?<=[\w)\]])\ (?:[-+*/]|//)?=\ (?=[\w"\[-])
    | (?<=\w)=(?=[\w"(\[-])
    | (?<=[(\[=])-(?=\w)
    | (?<=[,=]\ )-(?=\w)
    )+:?""",
    re.VERBOSE,
)
_KEYWORD_CALL = re.compile(r"\b(?:and|as|assert|elif|else|for|if|in|is|not|or|return|while|with)[(\[]")
_UNUSUAL = re.compile(r"\b(?:async|await|class|def|del|from|global|import|lambda|match|nonlocal|print|yield)\b")
_OPERATION = re.compile(r" (?:[-+*/%]|//) ")
_ASSIGNMENT = re.compile(r"=")


def is_plain(text: str, line_length: int) -> bool:
    """True for one line, after comments or one blank line at most, that black leaves alone where it stands."""
    if "\n" not in text:
        return False
    *above, line, end = text.split("\n")
    if end or len(line) > line_length or not all(_is_comment(other, line) for other in above[1:]):
        return False
    if above and above[0] and not _is_comment(above[0], line):
        return False
    bare = line.lstrip(" ")
    if not bare or bare[0] == '"' or not _PARTS.fullmatch(bare) or _KEYWORD_CALL.search(bare):
        return False
    return not _UNUSUAL.search(bare) and _equal_signs_fit(bare) and _slices_fit(bare)


def _slices_fit(line: str) -> bool:
    """Spaces around the colon of a slice, which belong there only where a part of the subscript is no plain name."""
    if " :" not in line:
        return True
    if '"' in line:
        return False
    opened: list[int] = []
    for at, character in enumerate(line):
        if character in "([":
            opened.append(at)
        elif character in ")]" and opened:
            start = opened.pop()
            inside = line[start + 1 : at]
            if character == "]" and " :" in inside and not _are_complex(inside):
                return False
        elif character == ":" and line[at - 1] == " " and (not opened or line[opened[-1]] != "["):
            return False
    return True


def _is_comment(line: str, below: str) -> bool:
    indent = len(below) - len(below.lstrip(" "))
    return line[: indent + 2] == " " * indent + "# " and line[-1:].strip() != "" and "\t" not in line


def _equal_signs_fit(line: str) -> bool:
    """Spaces around ``=`` outside of brackets and none inside; no walrus, no comparison is looked at."""
    for found in _ASSIGNMENT.finditer(line):
        at = found.start()
        if line[at - 1] in "=<>!" or line[at + 1 : at + 2] == "=":
            continue
        before = line[:at]
        inside = before.count("(") + before.count("[") > before.count(")") + before.count("]")
        if '"' in before and any(bracket in before for bracket in ('"(', '"[', ')"', ']"')):
            return False
        if inside == (line[at + 1 : at + 2] == " "):
            return False
    return True


def _are_complex(subscript: str) -> bool:
    if "(" in subscript or "[" in subscript:
        return False
    return all(_OPERATION.search(part) for part in subscript.split(", ") if " :" in part)
