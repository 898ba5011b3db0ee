"""Unified diffs that ``git apply`` takes."""

from __future__ import annotations

import difflib

_COLOURS = {b"-": b"31", b"+": b"32", b"@": b"36"}
_NO_NEWLINE = "\\ No newline at end of file\n"


def unified_diff(old: bytes | None, new: bytes, path: str) -> bytes:
    """The change of one file as git writes it; empty if nothing changes, ``old`` None for a new file.

    ``path`` is relative to the root of the repository, with forward slashes. Works on bytes, because the patch must
    hold the file's own encoding and newlines; only ``\\n`` ends a line.
    """
    if old == new:
        return b""
    before, after = _quoted("a/" + path), _quoted("b/" + path)
    head = f"diff --git {before} {after}\n"
    if old is None:
        head += "new file mode 100644\n"
    lines = difflib.unified_diff(_lines(old or b""), _lines(new))
    body = "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in list(lines)[2:])
    if body:
        head += f"--- {'/dev/null' if old is None else _ended(before)}\n+++ {_ended(after)}\n"
    return head.encode("utf-8", "surrogateescape") + body.encode("latin-1")


def coloured(patch: bytes) -> bytes:
    """A patch of one file for a terminal, in the colours of git; not for ``git apply``."""
    head = True
    shown = []
    for line in patch.split(b"\n"):
        head = head and not line.startswith(b"@@")
        style = b"1" if head else _COLOURS.get(line[:1], b"")
        shown.append(b"\x1b[" + style + b"m" + line + b"\x1b[m" if style and line else line)
    return b"\n".join(shown)


def _lines(data: bytes) -> list[str]:
    lines = data.decode("latin-1").split("\n")  # one character per byte, whatever the encoding is
    return [line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _quoted(path: str) -> str:
    """A path as git quotes it; letters outside of ASCII need no quotes."""
    if not any(character < " " or character in '"\\\x7f' for character in path):
        return path
    named = {"\t": "\\t", "\n": "\\n", '"': '\\"', "\\": "\\\\"}
    escaped = (named.get(c) or (f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c) for c in path)
    return '"' + "".join(escaped) + '"'


def _ended(path: str) -> str:
    """Paths with a space end with a tab, or what follows the space would be taken for a time."""
    return path + "\t" if " " in path and not path.startswith('"') else path
