"""Files that are written whole or not at all, through a temporary file beside them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".tl2npu.tmp"
_FRESH = 0.2  # seconds, in which another run claims the file that it has just made


def write_whole(
    target: Path, data: bytes, *, lasting: bool, finish: Callable[[Path], object] = lambda path: None
) -> None:
    """Put a file with this content in the place of ``target``. Raises ``OSError``; ``target`` is as it was then.

    ``lasting``: not even a loss of power leaves half of it, and what a killed run left of it goes. ``finish`` gets the
    temporary file when it has its content.
    """
    if lasting:
        _sweep(target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=_SUFFIX)
    temporary = Path(name)
    try:
        with _claim(handle):
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                if lasting:
                    file.flush()
                    os.fsync(file.fileno())
            finish(temporary)
            temporary.replace(target)
    except BaseException:  # also Ctrl-C
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def _claim(handle: int) -> Iterator[bool]:
    """Mark an open file as one that a run works on. False if another run does, or nobody can tell."""
    if fcntl is None:
        yield False
        return
    own = os.dup(handle)
    try:
        try:
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(own)


def _sweep(target: Path) -> None:
    """Remove the temporary files of this target that nobody works on: their runs were killed."""
    begin = f".{target.name}."
    with suppress(OSError), os.scandir(target.parent) as listing:
        named = [item for item in listing if item.name.startswith(begin) and item.name.endswith(_SUFFIX)]
        for path in [Path(item.path) for item in named if item.is_file(follow_symlinks=False)]:
            with suppress(OSError), path.open("rb") as file, _claim(file.fileno()) as stale:
                if stale and time.time() - path.stat().st_mtime > _FRESH:
                    path.unlink()
