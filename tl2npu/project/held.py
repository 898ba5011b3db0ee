"""Results that wait for their turn, so that memory does not grow with the number of files."""

from __future__ import annotations

import tempfile

IN_MEMORY = 32 * 1024 * 1024
"""Bytes; where there are more, all lie in an unnamed temporary file."""


class Held:
    """Numbered pieces of bytes, each taken out once. ``OSError`` where there is no room on the disk."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._file = tempfile.SpooledTemporaryFile(in_memory, prefix="tl2npu-")  # noqa: SIM115 - closed by close()
        self._places: dict[int, tuple[int, int]] = {}

    def put(self, number: int, data: bytes) -> None:
        """Keep a piece."""
        self._file.seek(0, 2)
        self._places[number] = self._file.tell(), len(data)
        self._file.write(data)

    def take(self, number: int) -> bytes | None:
        """A piece, None if it is not there (yet)."""
        if number not in self._places:
            return None
        start, length = self._places.pop(number)
        self._file.seek(start)
        return self._file.read(length)

    def close(self) -> None:
        """Give everything up."""
        self._file.close()
