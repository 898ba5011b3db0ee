"""Files that are written whole or not at all, through a temporary file beside them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_whole(
    target: Path, data: bytes, *, lasting: bool, finish: Callable[[Path], object] = lambda path: None
) -> None:
    """Put a file with this content in the place of ``target``. Raises ``OSError``; ``target`` is as it was then.

    ``lasting``: not even a loss of power leaves half of it. ``finish`` gets the temporary file when it has its content.
    """
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        if finish is not None:
            finish(temporary)
        temporary.replace(target)
    except BaseException:  # also Ctrl-C
        with suppress(OSError):
            temporary.unlink()
        raise
