"""TL106, TL107: a prim_func with several launches becomes several prim_funcs, each in its own factory.

The factory's name stays for a function that builds all of them and gives a function that runs them in order. Tensors
that were allocated in between (``T.alloc_global``) are outputs of the launch that uses them first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import FileKernels, is_prim_func
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.model import Inlined
from tl2npu.kernel.runtime import runtime_names
from tl2npu.kernel.style import launches_in
from tl2npu.kernel.symbolic import Sym
from tl2npu.options import Options
from tl2npu.passes.eager.factories import Eager, Lazy, is_launch
from tl2npu.passes.job import Job
from tl2npu.passes.launches.choices import all_named, separate_choices
from tl2npu.passes.launches.jit import check_place, inseparable, only_jit
from tl2npu.passes.launches.text import Methods, Part, rebuilt
from tl2npu.passes.launches.tuner import RESULTS, is_tuned, tuner_of, with_tuner
from tl2npu.passes.names.assignments import needed
from tl2npu.passes.names.definitions import visible_uses
from tl2npu.passes.plain.macros.inline import inline_sites
from tl2npu.passes.rounds import until_settled
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import LANGUAGE, Names, names_of
from tl2npu.source.tree import mentioned, names_in, nodes_of

_ALLOCATIONS = frozenset(LANGUAGE + name for name in ("alloc_global", "alloc_buffer", "sblock_alloc_buffer"))
"""Of a tensor in global memory, where they stand outside of the launches."""
_SOURCE = "get_kernel_source"


@dataclass(eq=False)
class Program:
    """A prim_func with several launches, and the factory around it."""

    factory: cst.FunctionDef
    node: cst.FunctionDef
    launches: list[cst.With]


def split_launches(original: Index, lazy: Lazy, leave: Container[int] = ()) -> None:
    """Split every prim_func with several launches; ``lazy`` is the file so far, and gets what comes of it.

    Those that cannot be split stand in ``lazy.whole`` with the reason. ``leave``: lines of prim_funcs that stay.
    """
    done: set[int] = set()
    lazy.module = _with_launches_in_place(original, lazy.module, leave)
    whole = separate_choices(original, lazy, leave, lambda node, names: len(_launches(node, names)) > 1)
    while True:
        index = original.after(lazy.module) if lazy.module is not original.module else original
        program = next((p for p in _programs(index, names_of(index)) if id(p.node) not in done), None)
        if program is None:
            return
        done.add(id(program.node))
        eager = lazy.origin(program.factory)
        line = original.first_line(program.node) or 1
        name = f"{program.factory.name.value}.{program.node.name.value}"
        source = eager or Eager(program.node, name, line, is_prim_func=True)
        if source.line in leave:
            continue
        try:
            if id(program.node) in whole:
                raise whole[id(program.node)]
            lazy.module = _split(index, program, source, lazy)
        except Blocked as blocked:
            lazy.whole.append((source, blocked))


def _programs(index: Index, names: Names) -> Iterator[Program]:
    for node in nodes_of(index.module, cst.FunctionDef):
        if not is_prim_func(node, names):
            continue
        found = _launches(node, names)
        factory = index.enclosing(node, cst.FunctionDef)
        if len(found) > 1 and factory is not None:
            yield Program(factory, node, found)


def _launches(node: cst.FunctionDef, names: Names) -> list[cst.With]:
    """The launches that stand in a prim_func one after the other."""
    return [
        line
        for line in node.body.body
        if isinstance(line, cst.With) and any(is_launch(item.item, names) for item in line.items)
    ]


def _split(index: Index, program: Program, source: Eager, lazy: Lazy) -> cst.Module:
    """The file with one prim_func split. Raises :class:`Blocked` where it cannot be."""
    names = names_of(index)
    factory, node = program.factory, program.node
    outputs = _check(index, names, program)
    temporaries, shared = _between(names, program)
    annotations = {p.name.value: p.annotation.annotation for p in node.params.params if p.annotation is not None}
    symbols = Symbols.of(index, factory, node, annotations | temporaries)
    every = [*(param.name.value for param in node.params.params), *temporaries]
    made = {name for name in every if name not in temporaries and name not in outputs}
    parts: list[Part] = []
    for launch, suffix in zip(program.launches, _suffixes(program), strict=True):
        lines = needed(shared, [launch])
        used = {name.value for line in (*lines, launch) for name in names_in(line)} & set(every)
        used |= symbols.givers((*lines, launch), used, [name for name in every if name in made])
        fresh = [name for name in every if name in used and name not in made]
        order = [*(name for name in every if name in used and name in made), *fresh]
        made |= used
        parts.append(Part(launch, suffix, lines, order, fresh))
    missing = [name for name in outputs if all(name not in part.tensors for part in parts)]
    if missing:
        raise inseparable(node, f"no launch uses the output `{missing[0]}`")
    tuner = tuner_of(index, names, factory)
    root = _profiler(index, names, factory, tuned=tuner is not None)
    methods = Methods(root, any(taken.attr.value == _SOURCE for taken, _ in _methods_taken(index, factory)[0]))
    *new, runner = rebuilt(index, names, factory, node, parts, temporaries, outputs, methods)
    for made_factory in new:
        lazy.made(made_factory.name, source)
    new += [runner] if tuner is None else with_tuner(index, factory, tuner, runner)
    lazy.changes.append((source, "TL106", node, f"wrote one prim_func for each of its {len(parts)} launches"))
    edits = Edits(index)
    edits.replace_many(factory, new)
    return edits.apply(index.module)


def _check(index: Index, names: Names, program: Program) -> list[str]:
    """The outputs of the prim_func, by name. Raises :class:`Blocked` for surroundings that cannot follow."""
    factory, node = program.factory, program.node
    check_place(index, names, factory, node)
    jit = only_jit(index, names, factory, node)
    if jit.unread is not None or jit.spread is not None:
        raise inseparable(node, f"`{factory.name.value}` is not under `tilelang.jit` with plain arguments")
    if not all_named(factory.params):
        raise inseparable(node, f"`{factory.name.value}` takes `*args` or `**kwargs`")
    place = factory.body.body.index(node)
    *between, last = factory.body.body[place + 1 :] or [node]
    if not all(_is_print(line) for line in between) or not (
        isinstance(last, cst.SimpleStatementLine)
        and isinstance(last.body[0], cst.Return)
        and isinstance(last.body[0].value, cst.Name)
        and last.body[0].value.value == node.name.value
    ):
        raise inseparable(node, f"`{factory.name.value}` does more than return it")
    params = [param.name.value for param in node.params.params]
    if "out_idx" not in jit.kwargs:
        return []
    try:
        given = ast.literal_eval(index.module.code_for_node(jit.kwargs["out_idx"]))
        return [params[position] for position in ([given] if isinstance(given, int) else given)]
    except (ValueError, SyntaxError, IndexError, TypeError):
        raise inseparable(jit.kwargs["out_idx"], "its `out_idx` is not a literal") from None


def _is_print(line: cst.CSTNode) -> bool:
    """``print(...)``: each part prints what it is."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    call = small.value if isinstance(small, cst.Expr) else None
    return isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == "print"


def _profiler(index: Index, names: Names, factory: cst.FunctionDef, *, tuned: bool) -> str | None:
    """How to spell tilelang, where a profiler of what the factory gives is wanted.

    What it gives may be called, profiled and handed on; a function has no other methods of a kernel. ``tuned``: a
    tuner profiles it, and adds its results.
    """
    found, givers = _methods_taken(index, factory)
    tuned = tuned or any(is_tuned(index, name) for name in givers)
    wanted: cst.CSTNode | None = factory if tuned else None
    for attribute, of_result in found:
        if not of_result:
            raise inseparable(attribute, f"`{factory.name.value}.{attribute.attr.value}` is used")
        if attribute.attr.value == _SOURCE:
            continue
        if attribute.attr.value != "get_profiler" and not (tuned and attribute.attr.value in RESULTS):
            raise inseparable(attribute, f"the compiled kernel's `{attribute.attr.value}` is used")
        wanted = attribute
    root = names.spell("tilelang", factory) if wanted is not None else None
    if wanted is not None and root is None:
        raise inseparable(wanted, "a profiler of the compiled kernel is used")
    return root


def _between(names: Names, program: Program) -> tuple[dict[str, cst.BaseExpression], list[cst.SimpleStatementLine]]:
    """Tensors allocated around the launches, by name, and other code there, which touches no tensor."""
    temporaries: dict[str, cst.BaseExpression] = {}
    shared: list[cst.SimpleStatementLine] = []
    tensors = {param.name.value for param in program.node.params.params}
    for line in program.node.body.body:
        if line in program.launches:
            continue
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call):
            target = small.targets[0].target
            if names.resolve(small.value.func) in _ALLOCATIONS and isinstance(target, cst.Name):
                spelled = names.spell(LANGUAGE + "Tensor", program.node)
                if spelled is None or len(small.targets) != 1 or len(small.value.args) > len(("shape", "dtype")):
                    raise inseparable(line, "they share a tensor that has no name")
                temporaries[target.value] = small.value.with_changes(func=cst.parse_expression(spelled))
                continue
        used = mentioned(line)
        if small is None or used & (tensors | temporaries.keys()) or not isinstance(small, (cst.Assign, cst.Expr)):
            raise inseparable(line, "the code around them accesses tensors or is not a plain assignment")
        assert isinstance(line, cst.SimpleStatementLine)
        if isinstance(small, cst.Assign):
            shared.append(line)
        elif not isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString)):
            raise inseparable(line, "the code around them accesses tensors or is not a plain assignment")
    return temporaries, shared


def _suffixes(program: Program) -> list[str]:
    """What the parts are called: by the comment above each launch if it is a word or two, else by number."""
    found: list[str] = []
    for launch in program.launches:
        comments = [line.comment.value for line in launch.leading_lines if line.comment is not None]
        words = re.findall(r"\w+", comments[-1].lower()) if comments else []
        plain = comments and re.fullmatch(r"#\s*[A-Za-z]\w*( \w+)?\s*", comments[-1])
        found.append("_".join(words) if plain else "")
    if all(found) and len(set(found)) == len(found):
        return found
    return [f"part{number}" for number in range(1, len(found) + 1)]


# Launches in macros: a prim_func that only calls macros, each with a launch of its own.
#
# Before such a prim_func can be split, its launches must stand in it.


def _with_launches_in_place(original: Index, module: cst.Module, leave: Container[int]) -> cst.Module:
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


# Which tensors a launch must be given for its sizes: the compiler takes a symbol from a tensor that has it as an axis.
#
# Source: ``_process_dynamic_symbolic`` in tilelang/jit/adapter/cython/adapter.py of tile-ai/tilelang-ascend. Outputs
# and workspaces give no symbol, and an axis of ``M + 1`` elements does not give ``M``.


@dataclass(frozen=True, eq=False)
class Symbols:
    """The sizes of a prim_func that are known at a call only.

    ``annotations``: of its tensors, and of those in between; ``shapes``: the axes of each; ``values``: of names that
    depend on such a size; ``setup``: the lines of the factory.
    """

    node: cst.FunctionDef
    annotations: Mapping[str, cst.BaseExpression]
    shapes: Mapping[str, Sequence[Sym]]
    values: Mapping[str, Sym]
    setup: Sequence[cst.CSTNode]

    @classmethod
    def of(
        cls,
        index: Index,
        factory: cst.FunctionDef,
        node: cst.FunctionDef,
        annotations: Mapping[str, cst.BaseExpression],
    ) -> Symbols:
        """Those of a prim_func in a factory."""
        file = FileKernels(index)
        located = next(item for item in file.located if item.node is node)
        sym, sequence, env = file.evaluator.sym, file.evaluator.sequence, located.env
        values = {name: sym(cst.Name(name), env) for name in runtime_names(file, located)}
        shapes = {
            tensor: [sym(axis, around) for shape in _shape(written) for axis, around in sequence(shape, env)]
            for tensor, written in annotations.items()
        }
        return cls(node, annotations, shapes, values, factory.body.body[: factory.body.body.index(node)])

    def givers(self, lines: Sequence[cst.CSTNode], own: Collection[str], there: Sequence[str]) -> set[str]:
        """The tensors that a launch must also be given.

        ``lines``: the launch, and what it needs of the prim_func. ``own``: the tensors that it has, ``there``: those
        that exist before it, inputs first. Raises :class:`Blocked` where none of them has a size.
        """
        used = {name for line in lines for name in mentioned(line)}
        used |= {name for tensor in own for name in mentioned(self.annotations[tensor])}
        for line in reversed(self.setup):
            used |= mentioned(line) if assigned_names(line) & used else set()
        wanted = {symbol for name in used & self.values.keys() for symbol in self.values[name].variables()}
        missing = wanted & _alone(self.values.values())
        missing -= {symbol for tensor in own if tensor in there for symbol in _alone(self.shapes[tensor])}
        found: set[str] = set()
        while missing:
            giver = next((tensor for tensor in there if missing & _alone(self.shapes[tensor])), None)
            if giver is None:
                symbol = min(missing).partition("@")[0]
                why = f"no tensor that one of its launches could be given has an axis of `{symbol}` elements"
                raise inseparable(self.node, why)
            found.add(giver)
            missing -= _alone(self.shapes[giver])
        return found


def _shape(annotation: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The shape of ``T.Tensor(shape, dtype)`` or ``T.Tensor[shape, dtype]``; empty for another annotation."""
    if isinstance(annotation, cst.Subscript):
        return [item.slice.value for item in annotation.slice[:1] if isinstance(item.slice, cst.Index)]
    given = annotation.args if isinstance(annotation, cst.Call) else ()
    named = [arg.value for arg in given if arg.keyword is not None and arg.keyword.value == "shape"]
    return named or [arg.value for arg in given[:1] if arg.keyword is None]


def _alone(values: Iterable[Sym]) -> set[str]:
    """The variables that stand alone as a value."""
    return {name for value in values for name in value.variables() if str(value) == name}


# What host code does with what a factory gives.


def _methods_taken(index: Index, factory: cst.FunctionDef) -> tuple[list[tuple[cst.Attribute, bool]], set[str]]:
    """Every ``f.attribute`` and ``f(...).attribute``, the second kind marked; names and returns are followed.

    Also the functions of the module that give what ``f`` gives, itself among them. ``f`` may stand in a function that
    returns it: then ``make(...)(...).attribute`` is of the second kind.
    """
    found: list[tuple[cst.Attribute, bool]] = []
    seen: set[tuple[cst.FunctionDef, int]] = set()
    functions = [(factory, 1)]
    while functions:
        current, calls = functions.pop()
        if (current, calls) in seen:
            continue
        seen.add((current, calls))
        around = index.enclosing(current, cst.FunctionDef)
        for use in visible_uses(around or index.module, current.name.value):
            for attribute, of_result, giver in _of_value(index, use, calls):
                if attribute is not None:
                    found.append((attribute, of_result))
                functions += [giver] if giver is not None else []
    return found, {function.name.value for function, _ in seen}


def _of_value(
    index: Index, value: cst.CSTNode, calls: int
) -> Iterator[tuple[cst.Attribute | None, bool, tuple[cst.FunctionDef, int] | None]]:
    """The attributes taken from what gives the kernel after some ``calls``, and the functions that return that."""
    above = index.parent(value)
    if isinstance(above, cst.Attribute) and above.value is value:
        yield above, calls == 0, None
    elif isinstance(above, cst.Call) and above.func is value and calls > 0:
        yield from _of_value(index, above, calls - 1)
    elif isinstance(above, (cst.Return, cst.IfExp)):
        function = index.enclosing(above, cst.FunctionDef)
        if isinstance(function, cst.FunctionDef):
            yield None, False, (function, calls + 1)
    elif isinstance(above, cst.Assign) and isinstance(target := above.targets[0].target, cst.Name):
        for handle in visible_uses(index.enclosing(above, cst.FunctionDef) or index.module, target.value):
            yield from _of_value(index, handle, calls)
