"""Layout of changed statements: by black where the author's were black's before; elsewhere long ones are broken."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from tl2npu.source.layout_units import Unit, cut, is_certain, laid_out, new_in
from tl2npu.source.pyproject import nearest_pyproject, tool_table
from tl2npu.source.text import with_line_ends

Trees = tuple[ast.Module | None, ast.Module | None]

_SWITCH = re.compile(r"#\s*fmt:")
# On one line, before anything that could make these quotes part of something else.
_SINGLE_QUOTED = re.compile(r"^[^\"'#\n]*'[^\"'\\\n]+'[^\"'#\n]*$", re.MULTILINE)
_STRING = re.compile(r'"[^"\\]*"')
_SPLITTABLE = re.compile(r"[^'#\\]*\w\([^'#\\]*, [^'#\\]*\)[^'#\\]*")
_WIDE = 120  # columns of a line; what is longer is broken, whatever layout the file has
_ENOUGH = 30  # statements all over the file of which black is asked whether it made them
_FLAGS = {  # key of [tool.black] -> (field of black.Mode, value when the key is true)
    "skip-string-normalization": ("string_normalization", False),
    "skip-magic-trailing-comma": ("magic_trailing_comma", False),
    "skip-source-first-line": ("skip_source_first_line", True),
    "preview": ("preview", True),
    "unstable": ("unstable", True),
}


def relayout(old_text: str, new_text: str, path: Path | str | None, trees: Trees = (None, None)) -> str:
    """``new_text`` with the statements that are new in black's layout, with the configuration that holds at ``path``.

    Only if those of ``old_text`` that they replace, and some of the others, were in it, and nothing else there says
    that black was not at work; otherwise only new statements that are too long for any reader are broken, and whenever
    black fails, ``new_text`` comes back as it is. Statements that are not new are never touched, but for the blank
    lines above them.
    Lines end as in ``old_text``. ``trees``: both texts parsed, where that has been done before.
    """
    if old_text == new_text:
        return new_text
    new_text = with_line_ends(old_text, new_text)
    try:
        settings = _settings(None if path is None else Path(path))
        old, new = (re.sub("\r\n?", "\n", text) for text in (old_text, new_text))
        done = _laid_out(old, new, settings, trees) if _may_be_blacks(old, settings) else None
        if done is None:
            done = _broken(old, new, settings, trees)
        return new_text if done == new else with_line_ends(old_text, done)
    except Exception:  # layout is a courtesy: it must never cost a migration
        return new_text


def _formatter(settings: dict[str, Any]) -> Callable[[str], str]:
    versions = tuple(settings.get("target_versions", ()))
    given = tuple(sorted((field, value) for field, value in settings.items() if field != "target_versions"))
    return partial(_formatted, versions, given)


@lru_cache(maxsize=64)  # kernels of a project often have the same heads
def _formatted(versions: tuple[str, ...], settings: tuple[tuple[str, Any], ...], text: str) -> str:
    import black  # takes as long as many files, which often have nothing to ask it
    from black.mode import TargetVersion

    named = {TargetVersion[name.upper()] for name in versions}
    return black.format_str(text, mode=black.Mode(**dict(settings), target_versions=named))


def broken(old_text: str, new_text: str, path: Path | str) -> str:
    """``new_text`` with each statement that ``old_text`` does not have over several lines, if it is too wide for any
    reader; as it is if black fails."""
    try:
        return _broken(old_text, new_text, _settings(Path(path)), (None, None))
    except Exception:  # as above
        return new_text


def _laid_out(old: str, new: str, settings: dict[str, Any], trees: Trees) -> str | None:
    """The new text in black's layout; None if the old one was not in it."""
    format_text = _formatter(settings)
    if not _SWITCH.search(old) and not _SWITCH.search(new):
        before, after = cut(old, trees[0]), cut(new, trees[1])
        gone, come = new_in(before, after), new_in(after, before)
        telling = [number for number, unit in enumerate(before) if unit.text.strip() != "else:"]  # formatters differ
        length = settings.get("line_length", 88)
        asked = laid_out(before, _doubtful(before, _sample(gone, telling), length), format_text)
        if asked is not None and any(before[number].text != text for number, text in asked.items()):
            return None
        done = laid_out(after, _doubtful(after, come, length), format_text) if asked is not None else None
        if done is not None:
            kept = {unit.text.strip("\n") for unit in before}
            result = {
                number: text
                for number, text in done.items()
                if after[number].text.strip("\n") not in kept or text.strip("\n") == after[number].text.strip("\n")
            }
            return "".join(result.get(number, unit.text) for number, unit in enumerate(after))
    return format_text(new) if format_text(old) == old else None


def _broken(old: str, new: str, settings: dict[str, Any], trees: Trees) -> str:
    """The new text with each new statement that is wider than readers like over several lines, as black breaks it."""
    width = max(_WIDE, settings.get("line_length", 0))
    if _SWITCH.search(new) or all(len(line) <= width for line in new.split("\n")):
        return new
    before, after = cut(old, trees[0]), cut(new, trees[1])
    kept = {unit.text.strip("\n") for unit in before}
    wide = [n for n, unit in enumerate(after) if unit.text.strip("\n") not in kept and _is_wide(unit.text, width)]
    format_text = _formatter({**settings, "line_length": width, "string_normalization": False})
    done = laid_out(after, wide, format_text) or {}
    texts = [unit.text for unit in after]
    for number, text in done.items():
        above = texts[number][: len(texts[number]) - len(texts[number].lstrip("\n"))]
        if _indent(text) == _indent(texts[number]):
            texts[number] = above + text.lstrip("\n")
    return "".join(texts)


def _is_wide(text: str, width: int) -> bool:
    return any(len(line) > width and not line.lstrip().startswith("#") for line in text.split("\n"))


def _indent(text: str) -> int:
    line = text.lstrip("\n")
    return len(line) - len(line.lstrip())


def _sample(gone: Sequence[int], others: Sequence[int]) -> list[int]:
    """Statements that go, and some from all over the file."""
    step = max(1, len(others) // _ENOUGH)
    return sorted({*gone, *others[::step]})


def _doubtful(units: Sequence[Unit], numbers: Sequence[int], length: int) -> list[int]:
    return [number for number in numbers if not is_certain(units, number, length)]


def _may_be_blacks(text: str, settings: dict[str, Any]) -> bool:
    """False for a text that black would certainly change somewhere."""
    if settings.get("string_normalization", True) and _SINGLE_QUOTED.search(text):
        return False
    length = settings.get("line_length", 88)
    inside = False  # of a text in three quotation marks
    for line in text.split("\n"):
        marks = line.count('"""')
        if len(line) > length and not (inside or marks) and _SPLITTABLE.fullmatch(_STRING.sub("0", line)):
            return False
        inside ^= marks % 2 == 1
    return True


def _settings(path: Path | None) -> dict[str, Any]:
    """Fields of ``black.Mode`` that are not as they are without a configuration."""
    project = nearest_pyproject(path if path is not None else Path.cwd())
    if project is None:
        return {}
    table = tool_table(project, "black")
    if not table:
        length = tool_table(project, "ruff").get("line-length")
        return {"line_length": length} if isinstance(length, int) else {}
    options = {key.replace("_", "-"): value for key, value in table.items()}
    settings = {field: value for key, (field, value) in _FLAGS.items() if options.get(key) is True}
    if isinstance(options.get("line-length"), int):
        settings["line_length"] = options["line-length"]
    return {**settings, "target_versions": options.get("target-version", [])}
