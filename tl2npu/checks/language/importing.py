"""TL734, TL735: what a module evaluates when it is imported, and TileLang for the NPU does not have.

A kernel that stays as it is can keep the whole file, and with it its migrated neighbours, from being imported.
Source: the name spaces of tile-ai/tilelang-ascend at 95acbd7f, and of its branch npuir at bd7c60c3
(``tilelang/__init__.py``, ``tilelang/language/__init__.py``, ``tilelang/transform/pass_config.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects import ascend, gpu, npuir
from tl2npu.dialects.absent import ABSENT, ABSENT_NPUIR
from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.pass_configs import NPUIR_MEMBERS, STRING_OF
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.style import is_gpu_kernel, launches_in
from tl2npu.options import Target
from tl2npu.results import KernelResult
from tl2npu.source.bound import params_of
from tl2npu.source.index import Index
from tl2npu.source.names import LANGUAGE, Names
from tl2npu.source.tree import nodes_of

_MODULES = frozenset("""
    autotuner cache carver common contrib engine env intrinsics jit language layout libinfo math primitives profiler
    quantize testing tools transform utils version
    """.split())
_KEYS = ("tilelang.PassConfigKey.", "tilelang.transform.PassConfigKey.")


@dataclass(frozen=True)
class _Space:
    """What one TileLang has: its operators, the names beside them, the members of ``PassConfigKey``.

    ``absent``: modules and names of GPU TileLang that it does not have, by full name.
    """

    called: str
    lookup: Callable[[str], Operator | None]
    beside: frozenset[str]
    keys: frozenset[str]
    absent: frozenset[str]


_SPACES: dict[Target, _Space] = {
    "ascendc": _Space("Ascend TileLang", ascend.lookup, frozenset(), frozenset(STRING_OF), ABSENT),
    "npuir": _Space(
        "TileLang for AscendNPU IR",
        npuir.lookup,
        frozenset("Any CallEffectKind Fragment KernelLaunchFrame Layout PrimExpr Ptr axis".split()),
        NPUIR_MEMBERS,
        ABSENT_NPUIR,
    ),
}


def failing(index: Index, target: Target) -> Iterator[tuple[cst.CSTNode, str]]:
    """The first place of each name that stops the import of a module, with what to say of it."""
    told = set[str]()
    for node, name in missing(index, target):
        if name not in told:
            told.add(name)
            yield node, f"`{name}` does not exist in {_SPACES[target].called}, so this file cannot be imported"


def missing(index: Index, target: Target) -> Iterator[tuple[cst.CSTNode, str]]:
    """Every import and attribute that stops the import of a module, with the name that does not exist."""
    names = Names(index)
    late = "__future__.annotations" in names.imported
    for part in _evaluated(index.module.body, late):
        yield from _missing(part, names, _SPACES[target])


def _evaluated(body: Sequence[cst.CSTNode], late: bool) -> Iterator[cst.CSTNode]:
    """What runs with the import: no bodies of functions, no ``if``, which may ask where it runs, no ``try``.

    ``late``: annotations are not evaluated.
    """
    for statement in body:
        if isinstance(statement, cst.FunctionDef):
            yield from statement.decorators
            if not late:
                yield statement.params
            else:
                yield from (param.default for param in params_of(statement.params) if param.default is not None)
            if statement.returns is not None and not late:
                yield statement.returns
        elif isinstance(statement, cst.ClassDef):
            yield from statement.decorators
            yield from _evaluated(statement.body.body, late)
        elif isinstance(statement, cst.SimpleStatementLine):
            yield from statement.body


def _missing(part: cst.CSTNode, names: Names, space: _Space) -> Iterator[tuple[cst.CSTNode, str]]:
    if isinstance(part, cst.ImportFrom):
        module = code(part.module) if part.module is not None and not part.relative else ""
        imported = () if isinstance(part.names, cst.ImportStar) else part.names
        absent = [name for alias in imported if (name := f"{module}.{alias.evaluated_name}") in space.absent]
        if _no_module(module, space):
            yield part, module
        elif absent:
            yield from ((part, name) for name in absent)
        elif module == "tilelang.language" and not isinstance(part.names, cst.ImportStar):
            for alias in part.names:
                if _no_operator(LANGUAGE + alias.evaluated_name, space):
                    yield part, f"{LANGUAGE}{alias.evaluated_name}"
        return
    if isinstance(part, cst.Import):
        yield from ((part, alias.evaluated_name) for alias in part.names if _no_module(alias.evaluated_name, space))
        return
    inner = {id(child) for node in nodes_of(part, cst.Lambda) for child in nodes_of(node, cst.Attribute)}
    for node in nodes_of(part, cst.Attribute):
        name = names.resolve(node) or ""
        known = f"{names.resolve(node.value)}.{node.attr.value}" not in space.absent
        if id(node) not in inner and (not known or _no_operator(name, space) or _no_key(name, space)):
            yield node, code(node)


def _no_module(module: str, space: _Space) -> bool:
    parts = module.split(".")
    if any(".".join(parts[:end]) in space.absent for end in range(2, len(parts) + 1)):
        return True
    first, _, rest = module.partition(".")
    return first == "tilelang" and bool(rest) and rest.partition(".")[0] not in _MODULES


def _no_operator(name: str, space: _Space) -> bool:
    short = name.removeprefix(LANGUAGE)
    if short == name or "." in short or short in space.beside or space.lookup(name) is not None:
        return False
    return short in gpu.OPERATORS or short in ascend.OPERATORS


def _no_key(name: str, space: _Space) -> bool:
    prefix = next((prefix for prefix in _KEYS if name.startswith(prefix)), None)
    return prefix is not None and name.removeprefix(prefix) not in space.keys


def beside_refused(original: Index, kernels: Sequence[KernelResult]) -> Iterator[tuple[KernelResult, str]]:
    """TL735: migrated kernels in a factory with one that stays for the GPU: the parser stops at that one."""
    by_line = {kernel.line: kernel for kernel in kernels if kernel.source == "gpu"}
    if all(kernel.disposition != "refused" for kernel in by_line.values()):
        return
    for group in _factories(FileKernels(original)):
        found = [by_line.get(original.position(located.node).line) for located in group]
        stays = next((kernel for kernel in found if kernel is not None and kernel.disposition == "refused"), None)
        for kernel in found:
            if stays is not None and kernel is not None and kernel.rewritten:
                yield kernel, _beside(stays.name.rpartition(".")[2])


def beside_gpu(file: FileKernels) -> Iterator[tuple[Located, str]]:
    """TL735: kernels for the NPU in a factory with one for the GPU, as a file stands."""
    for group in _factories(file):
        gpu_ones = [located for located in group if is_gpu_kernel(located.node, file.names)]
        for located in group:
            if gpu_ones and located not in gpu_ones and launches_in(located.node, file.names):
                yield located, _beside(gpu_ones[0].node.name.value)


def _factories(file: FileKernels) -> Iterator[list[Located]]:
    groups: dict[int, list[Located]] = {}
    for located in file.located:
        if located.factory is not None:
            groups.setdefault(id(located.factory.node), []).append(located)
    return (group for group in groups.values() if len(group) > 1)


def _beside(name: str) -> str:
    return f"`{name}` in the same factory stays for the GPU: the factory cannot run"
