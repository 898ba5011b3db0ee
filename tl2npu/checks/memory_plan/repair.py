"""Where the sizes of tiles are written: the edits of ``--unsafe``."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.checks.memory_plan.capacity import Needs
from tl2npu.checks.subject import Subject
from tl2npu.kernel.factories.callers import Caller, Values
from tl2npu.kernel.factories.tunings import named_lists
from tl2npu.source.tree import argument, walk

Repair = tuple[tuple[cst.CSTNode, str | None], ...]


def repair(subject: Subject, needs: Needs, callers: Sequence[Caller], fit: Values, tiles: Sequence[str]) -> Repair:
    """The numbers to write in place of those of one caller, or the values that a configuration should leave out.

    Empty if a number is not written out where it is given.
    """
    place = callers[0].node
    factory = subject.located.factory
    assert factory is not None
    wanted = {name: fit[name] for name in tiles if fit[name] != callers[0].values.get(name)}
    if isinstance(place, cst.FunctionDef) and place is not factory.node:
        return _fewer(needs, place, callers, tiles)
    found: list[tuple[cst.CSTNode, str | None]] = []
    for name, value in wanted.items():
        node = _written(place, factory.node, name)
        if not isinstance(node, cst.Integer):
            return ()
        found.append((node, str(value)))
    return tuple(found)


def _written(place: cst.CSTNode, factory: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    """The expression that gives a parameter its value: in the call, in the configuration, or its default."""
    positional = (*factory.params.posonly_params, *factory.params.params)
    if isinstance(place, cst.Dict):
        for element in place.elements:
            key = element.key if isinstance(element, cst.DictElement) else None
            if isinstance(key, cst.SimpleString) and key.evaluated_value == name:
                return element.value
    if isinstance(place, cst.Call):
        at = next((number for number, param in enumerate(positional) if param.name.value == name), None)
        given = argument(place, name, at)
        if given is not None:
            return given
    return next((p.default for p in (*positional, *factory.params.kwonly_params) if p.name.value == name), None)


def _fewer(needs: Needs, place: cst.FunctionDef, callers: Sequence[Caller], tiles: Sequence[str]) -> Repair:
    """Values to take out of the lists of an autotuner until every combination fits; the costliest first."""
    left = list(callers)
    dropped: list[tuple[str, int]] = []
    while True:
        bad = [c for c in left if needs.of(c)]
        if not bad:
            break
        choices = [
            (sum(c.values.get(name) == value for c in bad), value, name)
            for name in tiles
            for value in {c.values[name] for c in bad if name in c.values}
            if len({c.values.get(name) for c in left}) > 1
        ]
        if not choices:
            return ()
        _, value, name = max(choices)
        dropped.append((name, value))
        left = [c for c in left if c.values.get(name) != value]
    found: list[tuple[cst.CSTNode, str | None]] = []
    for node in walk(place.body):
        for name, values in named_lists(node):
            for element in values.elements:
                number = element.value
                if isinstance(number, cst.Integer) and (name, int(number.value)) in dropped:
                    found.append((element, None))
    return tuple(found) if len(found) == len(dropped) else ()
