"""The names of the pipes of a core, as flags and barriers take them.

Source: ``_pipe`` of ``tilelang/language/ascend.py`` at 95acbd7f, whose functions turn a name into upper case; the code
generators paste it behind ``PIPE_`` unseen. ``PIPE_MAP`` of ``src/target/codegen_npuir_api.cc`` for the npuir language.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

PIPES = ("fix", "mte1", "mte2", "mte3", "m", "v", "s")
WITH_ALL = (*PIPES, "all")
"""What is no part of an event may also be all pipes."""

NPUIR = (*WITH_ALL, "mte4", "mte5", "v2", "num", "unassigned")

_MEANT = {
    **dict.fromkeys(("vec", "vector", "aiv"), "v"),
    **dict.fromkeys(("mm", "mma", "mmad", "cube", "matrix", "aic"), "m"),
    **dict.fromkeys(("scalar", "su"), "s"),
    **dict.fromkeys(("fixpipe", "fixp"), "fix"),
}


def unknown(name: str, known: tuple[str, ...] = PIPES) -> str:
    """What is wrong with the name of a pipe; empty if it is one, in whatever case."""
    short = name.lower()
    if short in known:
        return ""
    bare = short.removeprefix("pipe_")
    close = [bare] if bare in known else difflib.get_close_matches(bare, known, n=1)
    meant = _MEANT.get(bare) or (close[0] if close else "")
    return f"unknown pipe `{name}`; " + (f"did you mean `{meant}`?" if meant else f"there are {', '.join(known)}")


def wrong_flags(fmap: object) -> str:
    """What is wrong with the map of ``T.init_flag``, ``{"V": {"MTE2": [0]}}``, whose names are printed as they are."""
    for source, targets in fmap.items() if isinstance(fmap, Mapping) else ():
        for name in (source, *(targets if isinstance(targets, Mapping) else ())):
            if isinstance(name, str) and (unknown(name) or name != name.upper()):
                return unknown(name) or f"the map of flags has upper-case names: `{name.upper()}`, not `{name}`"
    return ""


def unknown_npuir(name: str) -> str:
    """The same for the npuir language, which takes a name with and without ``PIPE_``."""
    return unknown(name, NPUIR) if unknown(name.lower().removeprefix("pipe_"), NPUIR) else ""
