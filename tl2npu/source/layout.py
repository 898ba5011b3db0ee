"""Layout of changed files: by black where the author's file was black's before, else not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tl2npu.source.pyproject import nearest_pyproject, tool_table

if TYPE_CHECKING:
    from black import Mode

_FLAGS = {  # key of [tool.black] -> (field of black.Mode, value when the key is true)
    "skip-string-normalization": ("string_normalization", False),
    "skip-magic-trailing-comma": ("magic_trailing_comma", False),
    "skip-source-first-line": ("skip_source_first_line", True),
    "preview": ("preview", True),
    "unstable": ("unstable", True),
}


def relayout(old_text: str, new_text: str, path: Path | str | None) -> str:
    """``new_text`` in black's layout if ``old_text`` was in it, with the configuration that holds at ``path``.

    Where the old text was a fixed point of black, untouched lines are one of the new text too; anywhere else, and
    whenever black fails, ``new_text`` comes back as it is.
    """
    newline = "\r\n" if "\r\n" in old_text else "\n"
    if old_text == new_text or not (_uniform(old_text, newline) and _uniform(new_text, newline)):
        return new_text
    try:
        import black  # takes longer to import than a file takes to migrate

        mode = _mode(None if path is None else Path(path))
        old = old_text.replace("\r\n", "\n")
        if black.format_str(old, mode=mode) != old:
            return new_text
        return black.format_str(new_text.replace("\r\n", "\n"), mode=mode).replace("\n", newline)
    except Exception:  # layout is a courtesy: it must never cost a migration
        return new_text


def _uniform(text: str, newline: str) -> bool:
    rest = text.replace("\r\n", "") if newline == "\r\n" else text
    return "\r" not in rest and (newline == "\n" or "\n" not in rest)


def _mode(path: Path | None) -> Mode:
    import black
    from black.mode import TargetVersion

    project = nearest_pyproject(path if path is not None else Path.cwd())
    if project is None:
        return black.Mode()
    table = tool_table(project, "black")
    settings: dict[str, Any] = {}
    if table:
        options = {key.replace("_", "-"): value for key, value in table.items()}
        settings = {field: value for key, (field, value) in _FLAGS.items() if options.get(key) is True}
        if isinstance(options.get("line-length"), int):
            settings["line_length"] = options["line-length"]
        versions = options.get("target-version", [])
        settings["target_versions"] = {TargetVersion[name.upper()] for name in versions}
    else:
        length = tool_table(project, "ruff").get("line-length")
        if isinstance(length, int):
            settings["line_length"] = length
    return black.Mode(**settings)
