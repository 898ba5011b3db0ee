"""What the functions of a file that make kernels take, as their text says."""

from __future__ import annotations

import inspect

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.tunings import tuning_of
from tl2npu.source.index import Index


def signatures(text: str) -> dict[str, inspect.Signature | None]:
    """By name, the parameters of each factory; None for a kernel without one, which takes tensors."""
    file = FileKernels(Index.parse(text))
    found: dict[str, inspect.Signature | None] = {}
    for located in file.located:
        own = located.factory.node if located.factory is not None else None
        found[(own or located.node).name.value] = None if own is None else _signature(file, own)
    return found


def _signature(file: FileKernels, factory: cst.FunctionDef) -> inspect.Signature:
    """Parameters that a tuner sets have a default."""
    node, kinds, tuning = factory.params, inspect.Parameter, tuning_of(file, factory)
    tuned = {name for config in tuning.configs for name in config.values}
    groups = (
        (node.posonly_params, kinds.POSITIONAL_ONLY),
        (node.params, kinds.POSITIONAL_OR_KEYWORD),
        ([node.star_arg] if isinstance(node.star_arg, cst.Param) else [], kinds.VAR_POSITIONAL),
        (node.kwonly_params, kinds.KEYWORD_ONLY),
        ([node.star_kwarg] if node.star_kwarg is not None else [], kinds.VAR_KEYWORD),
    )
    params: list[inspect.Parameter] = []
    for item, kind in [(item, kind) for group, kind in groups for item in group]:
        default = item.default if item.default is not None else None
        text: object = kinds.empty if default is None else _Written(code(default))
        by_tuner = item.name.value in tuned or tuning.unread is not None or any(p.default is _TUNED for p in params)
        if text is kinds.empty and by_tuner and kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY):
            text = _TUNED
        params.append(kinds(item.name.value, kind, default=text))
    return inspect.Signature(params)


class _Written(str):
    """A default as its source spells it."""

    __slots__ = ()
    __repr__ = str.__str__


_TUNED = _Written("...")
