"""Executes a text that may come in pieces: a script is one, a notebook has one for each of its cells.

Each piece has a name of its own, so that every place in it, in tracebacks and in what the simulator says, is one of
the piece: ``demo.ipynb:cell 4:13``.
"""

from __future__ import annotations
import __future__

import io
import linecache
from collections.abc import Iterable
from typing import Any

Piece = tuple[str, str]
"""Its name and its text."""

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


def run_pieces(pieces: Iterable[Piece], namespace: dict[str, Any]) -> None:
    """Execute pieces, one after the other, in one namespace. What one takes from the future holds in those behind.

    Exceptions pass through, SyntaxError of a piece too, when those before have been executed.
    """
    flags = 0
    for name, text in pieces:
        # Functions find their source by file name: the text is entered there, so that no file has to be written for it.
        lines = io.StringIO(text, newline=None).readlines()
        linecache.cache[name] = (len(text), None, lines, name)
        # The piece decides what it takes from the future, this module's own choice is not its.
        code = compile(text, name, "exec", flags, dont_inherit=True)
        flags |= code.co_flags & _FUTURE
        exec(code, namespace)
