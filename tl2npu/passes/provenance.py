"""The author's words for tiles that passes add: a finding never names what only the new text has.

A pass calls the tile that it adds for ``x`` ``x_l0c``, ``x_part`` or ``x_tmp``, and one for a tensor ``Bias``
``bias_tile``. Tiles of row numbers and the like are made for no tile of the author.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

import libcst as cst

from tl2npu.source.tree import nodes_of

_SPAN = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*")


def buffers_of(module: cst.Module) -> frozenset[str]:
    """The tiles that a text allocates, and the parameters of its functions: the names that a tile can be made for."""
    made = {
        item.target.value
        for node in nodes_of(module, cst.Assign)
        if isinstance(node, cst.Assign) and _allocates(node.value)
        for item in node.targets
        if isinstance(item.target, cst.Name)
    }
    return frozenset(made | {node.name.value for node in nodes_of(module, cst.Param) if isinstance(node, cst.Param)})


def _allocates(value: cst.BaseExpression) -> bool:
    func = value.func if isinstance(value, cst.Call) else None
    name = func.attr if isinstance(func, cst.Attribute) else func
    return isinstance(name, cst.Name) and name.value.startswith("alloc_")


def author_of(name: str, buffers: Collection[str]) -> str | None:
    """The buffer of the author that an added tile was made for, by its name; None if it was made for none.

    Of ``dQ`` and ``dq`` that one which the name repeats.
    """
    found = [buffer for buffer in buffers if name.casefold().startswith(f"{buffer.casefold()}_")]
    return max(found, key=lambda buffer: (len(buffer), name.startswith(buffer), buffer), default=None)


def in_authors_words(
    message: str, added: Collection[str], buffers: Collection[str], renamed: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The message with what its code calls ``added`` named by the ``buffers`` of the author.

    ``renamed``: what some were called when they were made.
    """

    def said(match: re.Match[str]) -> str:
        text = match.group(1)
        names = {name: author_of(renamed.get(name, name), buffers) for name in _NAME.findall(text) if name in added}
        if not names:
            return match.group()
        if text in names:
            author = names[text]
            return f"a tile added for `{author}`" if author else "an added tile"
        if all(names.values()):
            return f"`{_NAME.sub(lambda found: names.get(found.group()) or found.group(), text)}`"
        return "an added tile"

    return _SPAN.sub(said, message)
