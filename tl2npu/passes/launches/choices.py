"""TL106: a factory that gives one of several prim_funcs, one of which launches several times, becomes one for each.

The old name stays for the function that chooses. What it asserts on the way is asserted there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.factory import is_prim_func
from tl2npu.passes.eager.factories import Eager, Lazy
from tl2npu.passes.eager.kernel import Line
from tl2npu.passes.eager.text import without_blank_above
from tl2npu.passes.launches.jit import check_place, inseparable, only_jit
from tl2npu.passes.launches.tuner import tuner_of, with_tuner
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names, names_of
from tl2npu.source.tree import mentioned, names_in, nodes_of


def separate_choices(
    original: Index, lazy: Lazy, leave: Container[int], is_split: Callable[[cst.FunctionDef, Names], bool]
) -> dict[int, Blocked]:
    """Separate the factories of the file so far; by the id of a prim_func, why its factory stays as it is.

    ``is_split``: does a prim_func launch several times? ``leave``: lines of prim_funcs that stay.
    """
    kept: dict[int, Blocked] = {}
    done: set[int] = set()
    while True:
        index = original.after(lazy.module) if lazy.module is not original.module else original
        names = names_of(index)
        for factory in nodes_of(index.module, cst.FunctionDef):
            if id(factory) not in done:
                choices = [x for x in factory.body.body if isinstance(x, cst.FunctionDef) and is_prim_func(x, names)]
                if len(choices) > 1 and any(is_split(choice, names) for choice in choices):
                    break
        else:
            return kept
        done.add(id(factory))
        sources = [
            Eager(item, f"{factory.name.value}.{item.name.value}", original.first_line(item) or 1, is_prim_func=True)
            for item in choices
        ]
        try:
            stays = next((source for source in sources if source.line in leave), None)
            if stays is not None:
                raise inseparable(stays.node, f"not migrated: `{stays.name}` of the same factory was refused")
            made, new = _separated(index, names, factory, choices)
        except Blocked as blocked:
            kept |= {id(choice): blocked for choice in choices}
            continue
        for own, source in zip(made, sources, strict=True):
            lazy.made(own.name, source)
        text = f"wrote one factory for each of the {len(choices)} prim_funcs of `{factory.name.value}`"
        lazy.changes.append((sources[0], "TL106", factory, text))
        edits = Edits(index)
        edits.replace_many(factory, new)
        lazy.module = edits.apply(index.module)


def _separated(
    index: Index, names: Names, factory: cst.FunctionDef, choices: Sequence[cst.FunctionDef]
) -> tuple[list[cst.FunctionDef], list[cst.FunctionDef]]:
    """The factories of the prim_funcs, and these followed by the function that chooses."""
    check_place(index, names, factory, factory)
    only_jit(index, names, factory, factory)
    if not all_named(factory.params):
        raise inseparable(factory, f"`{factory.name.value}` takes `*args` or `**kwargs`")
    lines = [
        line for line in factory.body.body if isinstance(line, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    ]
    end = lines.index(choices[-1])
    docs = lines[:1] if is_text(lines[0]) else []
    setup = [line for line in lines[len(docs) : end] if line not in choices]
    chosen = {choice.name.value for choice in choices}
    if len(chosen) < len(choices) or any(chosen & mentioned(line) for line in setup):
        raise inseparable(factory, f"`{factory.name.value}` must only choose and return a prim_func")
    taken = {name.value for name in nodes_of(index.module, cst.Name)}
    outer = index.enclosing(factory, cst.FunctionDef)
    around = [*index.module.body, *(outer.body.body if outer is not None else ())]
    top = {name for line in around for name in assigned_names(line)}
    above = blank_lines(index, factory)
    made: list[cst.FunctionDef] = []
    for number, choice in enumerate(choices):
        name = _name(factory.name.value, choice.name.value)
        while name in top or (name in taken and name != choice.name.value):
            name += "_"
        top.add(name)
        made.append(_own(factory, choice, name, setup, factory.leading_lines if number == 0 else above))
    given = {choice.name.value: own for choice, own in zip(choices, made, strict=True)}
    tail = [_choosing(index, factory, line, given) for line in lines[end + 1 :]]
    wanted = {name.value for line in lines[end + 1 :] for name in names_in(line)}
    needed: list[Line] = []
    for line in reversed(setup):
        bound = assigned_names(line)
        if not bound or bound & wanted:
            needed.insert(0, _clone(line))
            wanted |= mentioned(line)
    own_names = {p.name.value for p in (*factory.params.params, *factory.params.kwonly_params)}
    if any(own_names & assigned_names(line) for line in needed):
        raise inseparable(factory, f"`{factory.name.value}` changes its own parameters before it chooses")
    body = [*docs, *needed, *tail]
    body[len(docs)] = without_blank_above(body[len(docs)])
    chooser = factory.with_changes(
        decorators=(), lines_after_decorators=(), leading_lines=above, body=factory.body.with_changes(body=body)
    )
    tuner = tuner_of(index, names, factory)
    return made, [*made, *([chooser] if tuner is None else with_tuner(index, factory, tuner, chooser))]


def _name(factory: str, choice: str) -> str:
    """``flashattn`` and ``main_split`` make ``flashattn_split``."""
    if choice.replace("_", "").startswith(factory.replace("_", "")):
        return choice
    return f"{factory}_{choice.removeprefix('main_')}"


def _own(
    factory: cst.FunctionDef, choice: cst.FunctionDef, name: str, setup: Sequence[Line], above: Sequence[cst.EmptyLine]
) -> cst.FunctionDef:
    """The factory of one prim_func, with what it uses of the setup."""
    used = {n.value for item in (choice, factory.decorators[-1]) for n in names_in(item)}
    lines: list[Line] = []
    for line in reversed(setup):
        if assigned_names(line) & used:
            used |= mentioned(line)
            lines.insert(0, line if above is factory.leading_lines else _clone(line))
    inner: Line = choice
    if lines:
        lines[0] = without_blank_above(lines[0])
    else:
        inner = without_blank_above(choice)
    give = cst.ensure_type(cst.parse_statement(f"return {choice.name.value}"), cst.SimpleStatementLine)
    give = give.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    return factory.with_changes(
        name=cst.Name(name),
        params=with_params(factory.params, used),
        decorators=[cst.ensure_type(factory.decorators[-1].deep_clone(), cst.Decorator)],
        leading_lines=above,
        body=factory.body.with_changes(body=[*lines, inner, give], footer=()),
    )


def _choosing(index: Index, factory: cst.FunctionDef, line: Line, given: dict[str, cst.FunctionDef]) -> Line:
    """A statement of the choice, with calls of the factories in place of the prim_funcs."""
    edits = Edits(index)
    for name in names_in(line):
        if not isinstance(name, cst.Name) or name.value not in given:
            continue
        above = index.parent(name)
        outer = index.parent(above) if isinstance(above, cst.IfExp) and above.test is not name else above
        if not isinstance(outer, cst.Return):
            raise inseparable(name, f"`{factory.name.value}` must only choose and return a prim_func")
        own = given[name.value]
        passed = [p.name.value for p in own.params.params]
        passed += [f"{p.name.value}={p.name.value}" for p in own.params.kwonly_params]
        edits.replace(name, cst.parse_expression(f"{own.name.value}({', '.join(passed)})"))
    place = list(nodes_of(index.module, cst.FunctionDef)).index(factory)
    changed = list(nodes_of(edits.apply(index.module), cst.FunctionDef))[place]
    new = changed.body.body[factory.body.body.index(line)]
    assert isinstance(new, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return new


def blank_lines(index: Index, function: cst.FunctionDef) -> list[cst.EmptyLine]:
    """What sets off another function behind one: two blank lines in a module, one in a function."""
    return [cst.EmptyLine(indent=False)] * (2 if isinstance(index.parent(function), cst.Module) else 1)


def all_named(params: cst.Parameters) -> bool:
    """True if every parameter can be passed on by its name or place."""
    return not params.posonly_params and params.star_kwarg is None and not isinstance(params.star_arg, cst.Param)


def with_params(params: cst.Parameters, used: Container[str]) -> cst.Parameters:
    """Those parameters that are used."""
    plain = [p.deep_clone() for p in params.params if p.name.value in used]
    named = [p.deep_clone() for p in params.kwonly_params if p.name.value in used]
    if last := named or plain:
        last[-1] = last[-1].with_changes(comma=(*params.params, *params.kwonly_params)[-1].comma)
    star = params.star_arg if named else cst.MaybeSentinel.DEFAULT
    return params.with_changes(params=plain, kwonly_params=named, star_arg=star)


def is_text(line: cst.CSTNode) -> bool:
    """A docstring."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


def _clone(line: Line) -> Line:
    made = line.deep_clone()
    assert isinstance(made, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return made
