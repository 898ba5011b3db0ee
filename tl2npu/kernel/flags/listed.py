"""``T.init_flag`` and ``T.clear_flag``: the flags of a map, ``{"V": {"MTE2": [0, 1]}}``, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from tl2npu.dialects.ascend import OPERATORS
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Sync

_SINGLE = {"init_flag": "set_flag", "clear_flag": "wait_flag"}


def singles(stmt: Sync, evaluator: Evaluator) -> list[Sync] | None:
    """The flags that a statement sets or waits for; itself if it is no list; None for a map that is not written out."""
    if stmt.op.name not in _SINGLE:
        return [stmt]
    try:
        return list(_listed(stmt, evaluator))
    except _Unread:
        return None


class _Unread(Exception):
    """The map is not written out."""


def _listed(stmt: Sync, evaluator: Evaluator) -> Iterator[Sync]:
    op = OPERATORS[_SINGLE[stmt.op.name]]
    for source, targets in _items(stmt.args["fmap"].node):
        for target, events in _items(targets):
            if not isinstance(events, (cst.List, cst.Tuple)):
                raise _Unread
            for event in events.elements:
                named = {"src": source, "dst": target, "eventId": event.value}
                yield replace(stmt, op=op, args={name: evaluator.scalar(n, stmt.env) for name, n in named.items()})


def _items(node: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    if not isinstance(node, cst.Dict):
        raise _Unread
    for item in node.elements:
        if not isinstance(item, cst.DictElement):
            raise _Unread
        yield item.key, item.value
