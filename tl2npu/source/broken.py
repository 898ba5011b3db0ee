"""Streams that take nothing any more, for instance because the disk below them is full."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO, Any


def discard(stream: IO[Any]) -> None:
    """What is still in the buffer goes nowhere: else Python would try again at its end, and end with code 120."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
