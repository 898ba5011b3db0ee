"""TL106, TL107: a prim_func with several launches becomes several prim_funcs, each in its own factory.

The factory's name stays for a function that builds all of them and gives a function that runs them in order. Tensors
that were allocated in between (``T.alloc_global``) are outputs of the launch that uses them first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.factory import is_prim_func
from tl2npu.passes.eager.factories import Eager, Lazy, is_launch
from tl2npu.passes.launches.choices import all_named, separate_choices
from tl2npu.passes.launches.jit import check_place, inseparable, only_jit
from tl2npu.passes.launches.macros import with_launches_in_place
from tl2npu.passes.launches.symbols import Symbols
from tl2npu.passes.launches.text import Methods, Part, rebuilt
from tl2npu.passes.launches.tuner import RESULTS, is_tuned, tuner_of, with_tuner
from tl2npu.passes.launches.uses import methods_taken
from tl2npu.passes.names.assignments import needed
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import mentioned, names_in, nodes_of

_PREFIX = "tilelang.language."
_ALLOCATIONS = frozenset(_PREFIX + name for name in ("alloc_global", "alloc_buffer", "sblock_alloc_buffer"))
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
    lazy.module = with_launches_in_place(original, lazy.module, leave)
    whole = separate_choices(original, lazy, leave, lambda node, names: len(_launches(node, names)) > 1)
    while True:
        index = original.after(lazy.module) if lazy.module is not original.module else original
        program = next((p for p in _programs(index, Names(index)) if id(p.node) not in done), None)
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
    names = Names(index)
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
    methods = Methods(root, any(taken.attr.value == _SOURCE for taken, _ in methods_taken(index, factory)[0]))
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
    found, givers = methods_taken(index, factory)
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
                spelled = names.spell(_PREFIX + "Tensor", program.node)
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
