"""TL816: what a file must say where it compiles kernels of other files that are for the NPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from tl2npu.across.grafts import grafted
from tl2npu.across.modules import display, may_be_inside
from tl2npu.across.symbols import Function, Submodule, Symbols
from tl2npu.checks.language.self_check import is_left_off, keys_needed
from tl2npu.checks.subject import Subject
from tl2npu.codes import finding
from tl2npu.files import may_compile, may_have_kernels
from tl2npu.kernel.access import hands_over
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import one_line
from tl2npu.kernel.factories.configs import ALL, SINGLE_CORE
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.factories.positions import parameter_count
from tl2npu.kernel.style import is_gpu_kernel
from tl2npu.options import Options
from tl2npu.passes.host.code import uses_gpu
from tl2npu.passes.host.imported import Followed, Imported, follow, is_compiled_above, maker_of
from tl2npu.passes.job import Job
from tl2npu.results import Change, Diagnostic, FileResult
from tl2npu.source.index import Index
from tl2npu.source.layout import relayout
from tl2npu.source.text import SourceError
from tl2npu.suppress import Suppressions

_DEPTH = 8


@dataclass(frozen=True)
class Compiled:
    """What a text is with all that the kernels of other files need. ``compiled``: as in ``Followed``."""

    text: str
    changes: tuple[Change, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    compiled: frozenset[tuple[str, str]] = frozenset()
    files: tuple[tuple[str, str], ...] = ()
    places: tuple[tuple[str, str, str], ...] = ()


def compiled_kernels(
    text: str, path: str, options: Options, now: Mapping[Path, str] = MappingProxyType({}), *, edit: bool = True
) -> Compiled:
    """The text of a file that compiles kernels of other files; ``now``: texts of these that are about to be written.

    Without ``edit`` it stays, and what is missing is an error.
    """
    if not may_compile(text.encode()):
        return Compiled(text)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Compiled(text)
    file, symbols = Path(path).absolute(), Symbols()
    for other, new in now.items():
        symbols.reads(other, new)
    symbols.reads(file, text, tree)
    uses = {name: function for name, function in _functions(tree, file, symbols) if _may_be_kernel(function)}
    read = _Kernels(symbols, options, now)
    found = [kernel for name, function in uses.items() if (kernel := read.of(name, function)) is not None]
    rests = symbols.files, symbols.modules
    if not found:
        return Compiled(text, (), (), frozenset(), *rests)
    index = Index.parse(text)
    done = follow(index, found, options, edit=edit)
    new = relayout(text, done.module.code, path) if done.changes else text
    diagnostics = _diagnostics(done, index, text)
    return Compiled(new, done.changes, diagnostics, done.compiled, *rests)


def _diagnostics(done: Followed, index: Index, text: str) -> tuple[Diagnostic, ...]:
    """What is wrong with the compilations, and with host code around them in a file that has no kernels."""
    suppressions = Suppressions.of(text)
    found = [(finding(item.code, item.line, item.message), item.is_sure) for item in done.said]
    of_gpu = None if may_have_kernels(text.encode()) or not done.compiled else uses_gpu(index.module)
    if of_gpu is not None:
        why = f"the kernels are for the NPU, but `{one_line(of_gpu)}` is about a GPU"
        found.append((finding("TL125", index.first_line(of_gpu) or 1, why), False))
    return tuple(
        item if is_sure else replace(item, severity="warning")
        for item, is_sure in found
        if not suppressions.covers(item.line, item.code)
    )


def with_compiled(
    result: FileResult, options: Options, now: Mapping[Path, str] = MappingProxyType({}), *, edit: bool = True
) -> tuple[FileResult, frozenset[tuple[str, str]]]:
    """The result of a file with its compilations of other files' kernels, and which of these it compiles."""
    if result.new_text is None or result.old_text is None or result.error is not None:
        return result, frozenset()
    done = compiled_kernels(result.new_text, result.path, options, now, edit=edit)
    told = compiled_kernels(result.old_text, result.path, options, now, edit=edit) if result.changed else done
    if not (done.files or done.places):
        return result, frozenset()
    said = dict.fromkeys((*result.diagnostics, *told.diagnostics))
    found = replace(
        result,
        new_text=done.text,
        changes=tuple(dict.fromkeys((*result.changes, *told.changes))),  # in lines of the input
        diagnostics=tuple(sorted(said, key=lambda item: (item.line, item.code))),
        depends=tuple(sorted({*result.depends, *done.files})),
        places=tuple(sorted({*result.places, *done.places})),
    )
    return found, done.compiled


def _functions(tree: ast.Module, file: Path, symbols: Symbols) -> Iterator[tuple[str, Function]]:
    """The functions of other files of the repository that a file names, by what it calls them."""
    inside: dict[str, object] = {}
    stars = False
    for node in ast.walk(tree):
        pairs: list[tuple[str, str, str | None]] = []
        if isinstance(node, ast.ImportFrom):
            dotted = "." * node.level + (node.module or "")
            stars |= node.names[0].name == "*"
            pairs = [(alias.asname or alias.name, dotted, alias.name) for alias in node.names if alias.name != "*"]
        elif isinstance(node, ast.Import):
            pairs = [(alias.asname or alias.name.split(".")[0], alias.name, None) for alias in node.names]
        for name, dotted, attribute in pairs:
            if may_be_inside(dotted) and symbols.locate(file, dotted) is not None:
                inside[name] = symbols.imported(file, dotted, attribute)
    for name, found in inside.items():
        if isinstance(found, Function):
            yield name, found
    table = symbols.module(file)
    for node in ast.walk(tree) if inside or stars else ():
        if isinstance(node, ast.Attribute) and isinstance(inside.get(_root(node)), Submodule):
            found = symbols.attributed(file, tree, node)
            if isinstance(found, Function):
                yield ast.unparse(node), found
        elif stars and isinstance(node, ast.Name) and table is not None and node.id not in table.bindings:
            found = symbols.defined(file, node.id)
            if isinstance(found, Function):
                yield node.id, found


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _marks(function: ast.FunctionDef) -> set[str]:
    """The last names of the decorators of a function."""
    marks = (mark.func if isinstance(mark, ast.Call) else mark for mark in function.decorator_list)
    return {ast.unparse(mark).rpartition(".")[2] for mark in marks}


def _may_be_kernel(function: Function) -> bool:
    """Whether a function is a prim_func, holds one, or returns what another returns, and does not compile it."""
    inner = [node for node in ast.walk(function.node) if isinstance(node, ast.FunctionDef)]
    if any("jit" in mark for mark in _marks(function.node)):
        return False
    returns = any(isinstance(node, ast.Return) and isinstance(node.value, ast.Call) for node in ast.walk(function.node))
    return returns or any("prim_func" in _marks(node) for node in inner)


@dataclass(eq=False)
class _Kernels:
    """Reads the kernels behind functions of other files."""

    symbols: Symbols
    options: Options
    now: Mapping[Path, str]
    files: dict[Path, FileKernels | None] = field(default_factory=dict)

    def of(self, name: str, function: Function) -> Imported | None:
        """The kernel that a function is or makes, if it is one for the NPU; ``name``: as it is called."""
        own = self._behind(function)
        if own is None:
            return None
        path, file, found = own
        first = found[0]
        subjects = [subject for item in found if (subject := self._subject(file, item)) is not None]
        if len(subjects) < len(found):
            return None
        needed = tuple(dict.fromkeys(key for s in subjects if not is_left_off(s) for key in keys_needed(s)))
        mixed = any(subject.is_mixed for subject in subjects)
        args = function.node.args
        return Imported(
            name,
            display(path),
            maker_of(first).name.value,
            (
                None
                if first.factory is None
                else tuple(arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs))
            ),
            parameter_count(first),
            needed,
            ALL if mixed else SINGLE_CORE,
            any(hands_over(subject.kernel) for subject in subjects),
            path in self.now,
        )

    def _behind(self, function: Function, depth: int = 0) -> tuple[Path, FileKernels, list[Located]] | None:
        file = self._file(function.module.path, function.module.text)
        own = [item for item in file.located if _is(item, function.node.name)] if file is not None else []
        if own and file is not None:
            return function.module.path, file, own
        returned = [node.value for node in ast.walk(function.node) if isinstance(node, ast.Return)]
        if len(returned) != 1 or depth > _DEPTH or not isinstance(returned[0], ast.Call):
            return None
        maker = self.symbols.valued(function.module, returned[0].func)
        if isinstance(returned[0].func, ast.Name):
            maker = self.symbols.defined(function.module.path, returned[0].func.id)
        inner = isinstance(maker, Function) and _may_be_kernel(maker)
        return self._behind(maker, depth + 1) if inner and isinstance(maker, Function) else None

    def _file(self, path: Path, text: str) -> FileKernels | None:
        if path not in self.files:
            self.files[path] = None
            if "prim_func" in text:
                try:
                    self.files[path] = FileKernels(grafted(Index.parse(text), str(path), text).index)
                except SourceError:
                    return None
        return self.files[path]

    def _subject(self, file: FileKernels, item: Located) -> Subject | None:
        """The kernel under check; None for one of a GPU, of Expert mode or without a launch."""
        try:
            job = Job(file.index, file, item.key, self.options)
            if job.kernel.launch is None or is_gpu_kernel(item.node, file.names):
                return None
        except Blocked:
            return None
        subject = Subject(job.kernel, file, item, self.options)
        return None if subject.is_expert or job.kernel.dialect == "npuir" else subject


def _is(item: Located, name: str) -> bool:
    """Whether a kernel is what a function of its module makes, or that function, and is not compiled there above it."""
    maker = maker_of(item)
    return maker.name.value == name and not is_compiled_above(maker)
