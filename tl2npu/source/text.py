"""Python source files as text, and back to the very same bytes."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
import warnings
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

MAX_BYTES = 4 * 1024 * 1024
_LINE_END = re.compile("\r\n|\n|\r")


class SourceError(Exception):
    """A file that cannot be read or parsed; ``str()`` is one line, ``line`` where it happened if that is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        text = " ".join(message.split())
        super().__init__(text if line is None else f"line {line}: {text}")
        self.line = line


class TooBig(SourceError):
    """A file over the limit of its size."""


@dataclass(frozen=True)
class SourceText:
    """The text of a file, newlines as they are in it, with what is needed to write it back.

    ``newline`` is the most frequent newline of the file, for lines that are added to it.
    """

    text: str
    encoding: str = "utf-8"
    bom: bool = False
    newline: str = "\n"

    def encode(self) -> bytes:
        """The bytes of the file; raises :class:`SourceError` if the encoding lacks a character."""
        try:
            data = self.text.encode(self.encoding)
        except UnicodeEncodeError as error:
            line = self.text.count("\n", 0, error.start) + 1
            character = self.text[error.start]
            raise SourceError(f"cannot write {character!r} in the file's encoding {self.encoding}", line) from None
        return codecs.BOM_UTF8 + data if self.bom else data

    def with_text(self, text: str) -> SourceText:
        """The same file with another text."""
        return replace(self, text=text)


def is_python(text: str) -> bool:
    """True for a text that Python can parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def decode_source(data: bytes, max_bytes: int = MAX_BYTES) -> SourceText:
    """Decode a Python file: BOM, PEP 263 cookie, else UTF-8. Raises :class:`SourceError`."""
    if len(data) > max_bytes:
        raise TooBig(f"file is too big ({len(data)} bytes, the limit is {max_bytes})")
    if b"\0" in data:
        raise SourceError("file contains NUL bytes", data.count(b"\n", 0, data.index(b"\0")) + 1)
    bom = data.startswith(codecs.BOM_UTF8)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise SourceError(f"cannot decode: {error.msg}") from None
    if encoding == "utf-8-sig":
        encoding = "utf-8"
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    try:
        text = body.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        line = body.count(b"\n", 0, error.start) + 1 if isinstance(error, UnicodeDecodeError) else None
        raise SourceError(f"cannot decode as {encoding}", line) from None
    source = SourceText(text, encoding, bom, _newline(text))
    if source.encode() != data:  # stateful codecs: bytes that were not touched would change
        raise SourceError(f"encoding {encoding} does not survive a round trip")
    return source


def with_line_ends(old: str, new: str) -> str:
    """``new`` with the line ends that its lines have in ``old``. Lines that are new get the most frequent one there.

    LibCST would end them like the first line of the file, whatever the others do.
    """
    if "\r" not in old:
        return new
    usual = _newline(old)
    before, after = _LINE_END.split(old), _LINE_END.split(new)
    ends = [*_LINE_END.findall(old), ""]
    made = [usual] * (len(after) - 1) + [""]
    if set(ends) - {usual, ""}:
        for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
            for at in range(min(block.size, len(made) - 1 - block.b)):
                made[block.b + at] = ends[block.a + at] or usual
    return "".join(map("".join, zip(after, made, strict=True)))


def read_source(path: Path, max_bytes: int = MAX_BYTES) -> SourceText:
    """Read a file; raises :class:`SourceError` for one that is missing, unreadable, too big or not text."""
    return decode_source(read_bytes(path, max_bytes), max_bytes)


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file; raises :class:`SourceError`."""
    try:
        if path.is_dir():
            raise SourceError("is a directory")
        if path.exists() and not path.is_file():
            raise SourceError("is not a regular file")
        size = path.stat().st_size
        if size > max_bytes:
            raise TooBig(f"file is too big ({size} bytes, the limit is {max_bytes})")
        return path.read_bytes()
    except FileNotFoundError:
        raise SourceError("no such file") from None
    except OSError as error:
        raise SourceError(f"cannot read: {error.strerror or error}") from None


def _newline(text: str) -> str:
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda newline: counts[newline])
