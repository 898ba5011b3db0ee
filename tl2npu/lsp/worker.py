"""A process of its own for what takes long: :func:`main` answers calls on its standard streams.

Its other end is :class:`Worker`, which lives in the event loop. A call that takes too long costs the process, and the
next call starts another one.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

TIMEOUT = 60.0
_HEAD = struct.Struct("!Q")
_START = "import sys; sys.path[:] = eval(sys.argv[1]); from tl2npu.lsp.worker import main; main()"


class WorkerError(Exception):
    """A call without an answer; ``str()`` is one line."""


class Worker:
    """Calls functions in the process, one after the other."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What ``function`` returns there. Raises :class:`WorkerError` if it fails, takes too long or ends."""
        async with self._turn:
            try:
                body = await asyncio.wait_for(self._ask(pickle.dumps((function, arguments))), self._timeout)
            except asyncio.TimeoutError:
                await self._end()
                raise WorkerError(f"took longer than {self._timeout:g} seconds") from None
            except (OSError, asyncio.IncompleteReadError):
                await self._end()
                raise WorkerError("internal error: the process that worked on the file ended") from None
            except asyncio.CancelledError:  # half an answer may be on its way
                await self._end()
                raise
        failed, value = pickle.loads(body)
        if failed:
            raise WorkerError(value)
        return value

    async def close(self) -> None:
        """End the process."""
        await self._end()

    async def _ask(self, body: bytes) -> bytes:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _START, repr(sys.path)),  # with -m the files of the workspace would come first
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=2**16,
            )
        sender, reader = self._process.stdin, self._process.stdout
        assert sender is not None
        assert reader is not None
        sender.write(_HEAD.pack(len(body)) + body)
        await sender.drain()
        (size,) = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        return await reader.readexactly(size)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Answer calls until the other end goes away."""
    while True:
        head = source.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return
        function, arguments = pickle.loads(source.read(*_HEAD.unpack(head)))
        try:
            answer = False, function(*arguments)
        except Exception as error:
            answer = True, f"internal error: {type(error).__name__}: {' '.join(str(error).split())}"
        body = pickle.dumps(answer)
        target.write(_HEAD.pack(len(body)) + body)
        target.flush()


def main() -> None:
    """The process: nothing that is printed in it gets among the answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(KeyboardInterrupt, BrokenPipeError):
        serve(sys.stdin.buffer, answers)
