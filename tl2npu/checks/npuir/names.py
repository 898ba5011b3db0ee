"""TL460: names that the branch does not export, or exports without a lowering; element types as objects."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.language.gpu_names import own_names
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects import npuir
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.model import Branch
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.source.names import LANGUAGE

_CLASSES = frozenset({"Layout", "Fragment", "KernelLaunchFrame", "Optional"})
"""Exports that are no operators."""
_INERT = frozenset({Kind.TYPE, Kind.DECORATOR, Kind.ANNOTATION, Kind.SCALAR})
"""Without a lowering these do no harm in the places where they stand, or do nothing at all."""


def check(subject: Subject) -> Iterator[Finding]:
    """The first use of each such name in the kernel and in the factory around it."""
    located = subject.located
    seen: set[str] = set()
    for node in own_names(subject, located.factory.node if located.factory is not None else located.node):
        short = subject.file.names.operator(node)
        if not short or short in seen:
            continue
        message, certain = _complaint(subject, node, short)
        if message:
            seen.add(short)
            yield Finding(
                "TL460", node, message, None if certain and not _may_be_left_out(subject, node) else "warning"
            )


def _complaint(subject: Subject, node: cst.CSTNode, short: str) -> tuple[str, bool]:
    """What is wrong with a name, and whether it surely fails."""
    op = npuir.lookup(LANGUAGE + short)
    if op is None:
        known = short.split(".")[0] in _CLASSES
        return "" if known else f"T.{short} does not exist in TileLang for AscendNPU IR", True
    if not op.modes and op.kind not in _INERT:
        return f"T.{short} is exported by TileLang for AscendNPU IR, but cannot be compiled", True
    parent = subject.file.index.parent(node)
    called = isinstance(parent, cst.Call) and parent.func is node
    if short in ITEM_SIZE and not called:
        return f'T.{short} is a function in TileLang for AscendNPU IR; element types are strings, "{short}"', False
    return "", False


def _may_be_left_out(subject: Subject, node: cst.CSTNode) -> bool:
    """Under an ``if`` that Python decides while it builds the kernel."""
    around = {id(above) for above in subject.file.index.ancestors(node)}
    branches = (placed.stmt for placed in subject.statements if isinstance(placed.stmt, Branch))
    return any(id(branch.node) in around and subject.late.python_decides(branch) for branch in branches)
