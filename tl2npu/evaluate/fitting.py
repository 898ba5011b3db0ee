"""Sizes that a factory takes: guessed ones are changed, one at a time, until what it asserts holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import libcst as cst

from tl2npu.evaluate import host
from tl2npu.evaluate.host import Unfit
from tl2npu.evaluate.sizes import Sizes
from tl2npu.evaluate.values import NotChecked
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.source.tree import mentioned, nodes_of

_MOST_STEPS = 6
_FACTORS = (2, 4, 8, 16, 32, 64)
_PLAIN = (1, 2, 4, 16, 32, 64, 128)


def fitted(file: FileKernels, located: Located, chosen: Sizes) -> Sizes | None:
    """The sizes with other values for parameters that a failing assertion names; None where none of these helps."""
    failing = _failing(file, located, chosen)
    for _ in range(_MOST_STEPS):
        if failing is None:
            return chosen
        step = next(_steps(file, located, chosen, failing), None)
        if step is None:
            return None
        chosen, failing = step
    return None


def _failing(file: FileKernels, located: Located, chosen: Sizes) -> Unfit | None:
    """The first assertion that does not hold; raises :class:`NotChecked` for anything else."""
    try:
        host.surroundings(file, located, chosen.bound, chosen.symbols)
    except Unfit as unfit:
        return unfit
    return None


def _steps(
    file: FileKernels, located: Located, chosen: Sizes, failing: Unfit
) -> Iterator[tuple[Sizes, Unfit | None]]:
    """Sizes at which the assertion holds, and the next one that does not."""
    for name in sorted(_parameters(file, located, failing.test) & chosen.bound.keys()):
        for value in _values(name, chosen.bound):
            new = replace(chosen, bound={**chosen.bound, name: value}, given=False)
            try:
                found = _failing(file, located, new)
            except NotChecked:
                continue
            if found is None or found.test is not failing.test:
                yield new, found


def _values(name: str, bound: Mapping[str, object]) -> list[object]:
    """Values to try: multiples of the one that it has, those of other parameters, plain ones."""
    given = bound[name]
    if isinstance(given, bool) or not isinstance(given, int):
        return [not given] if isinstance(given, bool) else []
    others = sorted({value for value in bound.values() if type(value) is int})
    return [value for value in (*(given * by for by in _FACTORS), *others, *_PLAIN) if value not in (given, 0)]


def _parameters(file: FileKernels, located: Located, test: cst.BaseExpression) -> set[str]:
    """Names that a test comes from, through the assignments around the kernel."""
    found = mentioned(test)
    around = [node for node in file.index.ancestors(located.node) if isinstance(node, cst.FunctionDef)]
    assigned = [node for function in around for node in nodes_of(function, cst.Assign)]
    for node in reversed(assigned):
        if mentioned(node.targets[0].target) & found:
            found |= mentioned(node.value)
    return found
