"""Launches in macros: a prim_func that only calls macros, each with a launch of its own.

Before such a prim_func can be split, its launches must stand in it.
"""

from __future__ import annotations

from collections.abc import Container
from functools import partial

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.model import Inlined
from tl2npu.kernel.style import launches_in
from tl2npu.options import Options
from tl2npu.passes.job import Job
from tl2npu.passes.plain.macros.inline import inline_sites
from tl2npu.passes.rounds import until_settled
from tl2npu.source.index import Index


def with_launches_in_place(original: Index, module: cst.Module, leave: Container[int]) -> cst.Module:
    """The module with the launches of macros in the prim_funcs that call several of them.

    ``leave``: lines of prim_funcs that stay. One whose macros cannot be written in place stays, too.
    """
    if not any(isinstance(node, cst.FunctionDef) and _is_macro(node) for node in original.statements):
        return module
    file = FileKernels(original if module is original.module else original.after(module))
    for key in [item.key for item in file.located]:
        located = next(item for item in file.located if item.key == key)
        if (original.first_line(located.node) or 1) in leave or _launching_calls(located, file) < 2:
            continue
        job = Job(original, file, key, Options())
        try:
            until_settled(job, partial(_inlined, job))
        except Blocked:
            continue
        file = job.file
    return file.index.module


def _inlined(job: Job) -> bool:
    return bool(inline_sites(job, launching=True))


def _is_macro(node: cst.FunctionDef) -> bool:
    """By its looks: a first, cheap question."""
    return any("macro" in code(decorator.decorator) for decorator in node.decorators)


def _launching_calls(located: Located, file: FileKernels) -> int:
    """How many launches the macros that a prim_func calls hold; 0 if it has one of its own."""
    if not located.factory or launches_in(located.node.body, file.names):
        return 0
    return sum(
        len(launches_in(stmt.definition.body, file.names)) for stmt in located.read().body if isinstance(stmt, Inlined)
    )
