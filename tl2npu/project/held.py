"""Results that wait for their turn, so that memory does not grow with the number of files."""

from __future__ import annotations

import tempfile
from typing import IO

IN_MEMORY = 32 * 1024 * 1024
"""Bytes; what is more lies in an unnamed temporary file."""


class Held:
    """Numbered pieces of bytes, each taken out once."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._room = in_memory
        self._near: dict[int, bytes] = {}
        self._far: dict[int, tuple[int, int]] = {}
        self._file: IO[bytes] | None = None

    def put(self, number: int, data: bytes) -> None:
        """Keep a piece."""
        if len(data) > self._room and self._written(number, data):
            return
        self._room -= len(data)
        self._near[number] = data

    def take(self, number: int) -> bytes | None:
        """A piece, None if it is not there (yet)."""
        if number in self._near:
            data = self._near.pop(number)
            self._room += len(data)
            return data
        if number not in self._far or self._file is None:
            return None
        start, length = self._far.pop(number)
        self._file.seek(start)
        return self._file.read(length)

    def close(self) -> None:
        """Give everything up."""
        self._near.clear()
        if self._file is not None:
            self._file.close()

    def _written(self, number: int, data: bytes) -> bool:
        """False if there is no room for it on the disk: then it stays in memory after all."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="tl2npu-")  # noqa: SIM115 - closed by close()
            start = self._file.seek(0, 2)
            self._file.write(data)
            self._file.flush()
        except OSError:
            return False
        self._far[number] = start, len(data)
        return True
