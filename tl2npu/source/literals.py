"""The values of literals. LibCST asks Python's parser for each, however plain it is."""

from __future__ import annotations

import libcst as cst


def text_of(node: cst.SimpleString) -> str | bytes:
    """What a string stands for."""
    written = node.value
    if written[0] in "\"'" and "\\" not in written and written[:3] not in ('"""', "'''"):
        return written[1:-1]
    return node.evaluated_value
