"""TL231, TL122, TL213, TL816: calls that compile a kernel which another file defines.

A stub of its factory, which takes as many tensors, stands in for the import while the file is read and edited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.across.imports import DOT, dotted_text
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.factories.configs import read_configs
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.factories.positions import compilations, indices
from tl2npu.options import Options
from tl2npu.passes.host import jit, jit_configs, pass_configs
from tl2npu.passes.job import Job
from tl2npu.results import Change
from tl2npu.source.edits import EditError, Edits
from tl2npu.source.index import Foreign, Index
from tl2npu.source.names import Names
from tl2npu.source.tree import last_name, names_in, nodes_of, walk

_LANGUAGE = f"T{DOT}"


@dataclass(frozen=True)
class Imported:
    """A kernel of another file.

    ``name``: how the file spells the factory, or with ``parameters`` None the prim_func itself. ``source`` is the file
    that defines it as ``factory``. ``tensors``: how many parameters the prim_func has. ``needed``: the keys without
    which it is wrong; ``written``: those that are set where one of them is missing, and in any case with ``is_gpu``:
    this run writes the kernel, and the file was written for its GPU form. ``hands_over``: its cores exchange data on
    the chip.
    """

    name: str
    source: str
    factory: str
    parameters: tuple[str, ...] | None
    tensors: int
    needed: tuple[str, ...]
    written: tuple[str, ...]
    hands_over: bool = False
    is_gpu: bool = False

    @property
    def stand_in(self) -> str:
        """The name that the file has for it while it is read: no other one."""
        return self.name.replace(".", DOT) + DOT

    @property
    def stub(self) -> str:
        """A definition to be read in place of the kernel's own."""
        launch = "threads=128" if self.is_gpu else "threads=2, is_npu=True"
        name = self.stand_in if self.parameters is None else "main"
        given = ", ".join(f'p{place}: {_LANGUAGE}.Tensor((1,), "float32")' for place in range(self.tensors))
        body = (
            f"@{_LANGUAGE}.prim_func",
            f"def {name}({given}):",
            f"    with {_LANGUAGE}.Kernel(1, {launch}):",
            "        pass",
        )
        if self.parameters is None:
            return "\n".join((*body, ""))
        head = f"def {self.stand_in}({', '.join(f'{name}=None' for name in self.parameters)}):"
        return "\n".join((head, *(f"    {line}" for line in (*body, "return main")), ""))


@dataclass(frozen=True)
class Said:
    """What is wrong with a place of a file that compiles kernels of others."""

    code: str
    line: int
    message: str
    is_sure: bool = True


@dataclass(frozen=True)
class Followed:
    """A file whose compilations set what kernels of other files need.

    ``compiled``: the kernels that it compiles, by file and factory.
    """

    module: cst.Module
    changes: tuple[Change, ...]
    said: tuple[Said, ...]
    compiled: frozenset[tuple[str, str]]


def handed_on(job: Job) -> str:
    """The function by which other files may compile a kernel; empty where a decorator does, or none can see it."""
    made = maker_of(job.located)
    is_seen = job.origin is None and isinstance(job.file.index.parent(made), cst.Module)
    return made.name.value if is_seen and not is_compiled_above(made) else ""


def maker_of(located: Located) -> cst.FunctionDef:
    """The function that others call for a kernel: its factory, or the prim_func of a module."""
    return located.node if located.factory is None else located.factory.node


def is_compiled_above(made: cst.FunctionDef) -> bool:
    """Whether a decorator compiles what a function makes."""
    marks = [mark.decorator for mark in made.decorators]
    return any("jit" in last_name(mark.func if isinstance(mark, cst.Call) else mark) for mark in marks)


def follow(original: Index, kernels: Sequence[Imported], options: Options, *, edit: bool) -> Followed:
    """Edit the compilations of kernels of other files, or without ``edit`` only say what they lack."""
    first = index = _with_stubs(original, kernels)
    changes: list[Change] = []
    said: list[Said] = []
    compiled: set[tuple[str, str]] = set()
    for kernel in kernels:
        file = FileKernels(index)
        key = next(item.key for item in file.located if kernel.stand_in in item.key[0].split("."))
        job = Job(first, file, key, options)
        found = compilations(job.located)
        if found:
            compiled.add((kernel.source, kernel.factory))
        unclear = next(_unclear(file, kernel, found), None)
        if unclear is not None and kernel.needed:
            said.append(Said("TL816", first.first_line(unclear) or 1, _unseen(kernel), is_sure=False))
        lacking = _lacking(job, kernel, kernel.needed)
        wanted = edit and bool(_lacking(job, kernel, kernel.written) if kernel.is_gpu else lacking)
        if not lacking and not wanted:
            continue
        try:
            if not edit:
                raise Blocked("TL816", lacking[0][0], _lacks(kernel, lacking))
            _write(job, kernel)
        except (Blocked, EditError) as error:
            if not lacking:
                continue
            node, why = (error.node, error.message) if isinstance(error, Blocked) else (lacking[0][0], str(error))
            line = first.first_line(node) or first.first_line(lacking[0][0]) or 1
            text = why if not edit else f"{_lacks(kernel, lacking)}, and tl2npu cannot add that: {why}"
            said.append(Said("TL816", line, text))
            continue
        changes += [Change(c.code, c.line, c.message, None, c.safety) for c in job.changes]
        said += [Said(note.code, note.line, note.message, note.severity == "error") for note in job.notes]
        index = job.file.index
    return Followed(_without_stubs(index, kernels), tuple(changes), tuple(said), frozenset(compiled))


def _with_stubs(original: Index, kernels: Sequence[Imported]) -> Index:
    """The file with a name of its own for each kernel, and the stubs behind its last line."""
    names, edits = Names(original), Edits(original)
    own = {kernel.name: kernel for kernel in kernels}
    dotted = [node for node in nodes_of(original.module, cst.Attribute) if dotted_text(node) in own]
    inside = {id(name) for node in dotted for name in names_in(node)}
    plain = [node for node in names_in(original.module) if node.value in own and id(node) not in inside]
    for node in (*dotted, *plain):
        if isinstance(original.parent(node), (cst.ImportAlias, cst.AsName)) or names.resolve(node) is None:
            continue
        stand_in = own[dotted_text(node)].stand_in
        edits.replace(node, cst.Name(stand_in, node.lpar, node.rpar))
    module = edits.apply(original.module)
    stubs = "".join((f"import tilelang.language as {_LANGUAGE}\n", *(kernel.stub for kernel in kernels)))
    text = Index.parse(stubs)
    added = text.module.body
    place = Foreign("", 1, text)
    foreign = {id(node): place for statement in added for node in walk(statement)}
    return original.including(module.with_changes(body=[*module.body, *added]), foreign)


def _without_stubs(index: Index, kernels: Sequence[Imported]) -> cst.Module:
    """The file with its own names again."""
    body = index.module.body
    module = index.module.with_changes(body=body[: len(body) - len(kernels) - 1])
    back = Index.of(module)
    edits, own = Edits(back), {kernel.stand_in: kernel.name for kernel in kernels}
    for node in names_in(module):
        if node.value in own:
            new = cst.parse_expression(own[node.value])
            edits.replace(node, new.with_changes(lpar=node.lpar, rpar=node.rpar))
    return edits.apply(module)


def _lacking(job: Job, kernel: Imported, keys: Sequence[str]) -> list[tuple[cst.CSTNode, list[str]]]:
    """The compilations of a kernel that lack something, with the keys that are not certainly on."""
    found: list[tuple[cst.CSTNode, list[str]]] = []
    for item in compilations(job.located):
        configs = read_configs(job.file, item)
        missing = [key for key in keys if not configs.is_on(key)]
        sure = [key for key in missing if configs.values.get(key) is False or not configs.unknown]
        if sure or _counts_back(job, kernel, item):
            found.append((item.node, sure))
    return found


def _counts_back(job: Job, kernel: Imported, found: Compilation) -> bool:
    try:
        outputs = indices(job.file, job.located, found, "out_idx") if kernel.hands_over else None
    except Blocked:
        return False
    return outputs is not None and min(outputs.given, default=0) < 0


def _lacks(kernel: Imported, lacking: Sequence[tuple[cst.CSTNode, list[str]]]) -> str:
    keys = dict.fromkeys(key for _, missing in lacking for key in missing)
    what = " and ".join(f"`{key}`" for key in keys) or "an `out_idx` that counts from the front"
    return f"`{kernel.name}` of {kernel.source} needs {what} where it is compiled"


def _unseen(kernel: Imported) -> str:
    keys = " and ".join(f"`{key}`" for key in kernel.needed)
    return f"cannot see how `{kernel.name}` of {kernel.source} is compiled from here: set {keys} there"


def _write(job: Job, kernel: Imported) -> None:
    """What the pipeline of the kernel does with compilations of its own file. Raises :class:`Blocked`."""
    if kernel.is_gpu:
        jit.name_positional(job)
    for place in range(len(compilations(job.located))):
        jit.drop_arguments(job, place)
        jit_configs.drop_gpu_keys(job, place)
    if kernel.hands_over:
        jit.count_from_the_front(job)
    pass_configs.require(job, kernel.written)


def _unclear(file: FileKernels, kernel: Imported, found: Sequence[Compilation]) -> Iterator[cst.CSTNode]:
    """Places that hand the kernel to something that may compile it."""
    index, known = file.index, {id(item.node) for item in found}
    held = (cst.Assign, cst.AnnAssign, cst.Return, cst.ImportAlias, cst.AsName, cst.FunctionDef)
    for use in names_in(index.module):
        if use.value != kernel.stand_in or any(id(above) in known for above in index.ancestors(use)):
            continue
        node: cst.CSTNode = use
        around = index.parent(node)
        while isinstance(around, cst.Call) and around.func is node:
            node, around = around, index.parent(around)
        given = isinstance(around, (cst.Arg, cst.Element, cst.DictElement))
        if given or (node is use and not isinstance(around, held)) or (isinstance(around, cst.Assign) and not found):
            yield use
