"""Concrete sizes: the factory run on what its callers in the file, its autotune configs, or its defaults give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import cast

import libcst as cst

from tl2npu.kernel.factories.command_line import CommandLine
from tl2npu.kernel.factories.concrete import Known, evaluate, run, value_of
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.factories.shapes import FOLLOWED
from tl2npu.kernel.factories.tunings import Config, tuning_of
from tl2npu.source.constants import UNKNOWN, NoValue
from tl2npu.source.names import Names
from tl2npu.source.tree import calls_in

Values = dict[str, int]

LIMIT = 256
"""More ways to call a factory are not looked at; TL740 says so."""
_OPTIONS, _TUNED = "--", "@autotune"
"""Among what a call binds: some values may come from the command line's defaults; a tuner gives some."""


@dataclass(frozen=True, eq=False)
class Caller:
    """One way in which the factory is called: ``bound`` are its parameters, ``node`` the call, the configuration, or
    the factory where its defaults are taken. ``known`` is what comes of it, ``values`` its integers, ``words`` its
    strings.
    """

    node: cst.CSTNode
    bound: Known
    known: Known
    values: Values
    words: Mapping[str, str]
    module: Known = field(repr=False)
    names: Names = field(repr=False)

    @property
    def takes_options(self) -> bool:
        """Whether the sizes may be those of the script's command line: other ones only take other options."""
        return _OPTIONS in self.bound

    @property
    def is_tuned(self) -> bool:
        """Whether an autotuner sets some of the sizes: it goes on where the compiler rejects a configuration."""
        return _TUNED in self.bound

    @property
    def unknown(self) -> Caller:
        """Another call, of which nothing but what the module says is known."""
        return Caller(self.node, {}, self.module, _integers(self.module), _words(self.module), self.module, self.names)

    def with_defaults(self, factory: cst.FunctionDef) -> Caller | None:
        """The call with the defaults of parameters for which it gives what cannot be read; None if there are none."""
        params = (*factory.params.params, *factory.params.kwonly_params)
        given = {p.name.value: int(p.default.value) for p in params if isinstance(p.default, cst.Integer)}
        open_ones = {name: value for name, value in given.items() if name not in self.values}
        return replace(self, values=self.changed(factory, open_ones)) if open_ones else None

    def changed(self, factory: cst.FunctionDef, changes: Mapping[str, int]) -> Values:
        """The integers with other values for some parameters."""
        return _integers(_in_factory(factory, {**self.bound, **changes}, self.module, self.names))


def callers_of(
    file: FileKernels, located: Located, *, shapes: bool = False, given: Sequence[str] = ()
) -> tuple[Caller, ...]:
    """Every readable call of the factory, with every configuration of the autotuner; the defaults if there is none.

    A call in a loop over values that are written out counts once for each of them. ``shapes``: also with the sizes of
    tensors that the file makes. ``given``: calls, as text; those of the factory count in place of those in the file.
    """
    key = callers_of, located.key, shapes, tuple(given)
    if (found := _as_before(file, located, file.around.get(key))) is None:
        found = tuple(_callers(file, located, shapes, given))
    file.around[key] = located, found
    return found


def _as_before(file: FileKernels, located: Located, told: object) -> tuple[Caller, ...] | None:
    """The callers that an earlier state of the file had, in this one; None where one of them is gone."""
    if not isinstance(told, tuple):
        return None
    before, callers = told
    if before is located:
        return cast(tuple[Caller, ...], callers)
    now = {before.node: located.node}
    if before.factory is not None and located.factory is not None:
        now[before.factory.node] = located.factory.node
    found = tuple(replace(one, node=now.get(one.node, one.node), names=file.names) for one in callers)
    return found if all(one.node in file.index for one in found) else None


def _callers(file: FileKernels, located: Located, shapes: bool, given: Sequence[str]) -> Iterable[Caller]:
    module: Known = {FOLLOWED: True} if shapes else {}
    run(file.index.module.body, module, file.names)
    if located.factory is None:
        return (Caller(located.node, {}, module, _integers(module), _words(module), module, file.names),)
    node = located.factory.node
    found: dict[tuple[object, ...], Caller] = {}
    asked = [*_asked(file, node, module, given)]
    for place, bound in asked or _bindings(file, node, module):
        known = _in_factory(node, bound, module, file.names)
        made = Caller(place, bound, known, _integers(known), _words(known), module, file.names)
        found.setdefault((id(place), frozenset(made.values.items()), frozenset(made.words.items())), made)
        if len(found) == LIMIT:
            break
    return found.values()


def _asked(
    file: FileKernels, node: cst.FunctionDef, module: Known, given: Sequence[str]
) -> Iterator[tuple[cst.CSTNode, Known]]:
    """What calls from outside of the file give the parameters; their place is the factory."""
    defaults, configs = _bind_defaults(node, module, file.names), tuning_of(file, node).configs
    tuned = {name for config in configs for name in config.values}
    for text in given:
        call = cst.parse_expression(text)
        args = _arguments(call, node.name.value, file.names) if isinstance(call, cst.Call) else None
        if args is not None:
            yield from _configured(node, defaults, _bind(node, args, tuned, module, file.names), configs)


def _bindings(
    file: FileKernels, node: cst.FunctionDef, module: Known, inner: frozenset[str] = frozenset()
) -> Iterator[tuple[cst.CSTNode, Known]]:
    """Places with what they give the parameters; a configuration fills what a call leaves open."""
    defaults = _bind_defaults(node, module, file.names)
    configs = tuning_of(file, node).configs
    tuned = {name for config in configs for name in config.values}
    given: list[tuple[cst.CSTNode, Known]] = []
    for call in calls_in(file.index.module):
        args = _arguments(call, node.name.value, file.names)
        if args is not None:
            for around in _around(file, call, module, inner | {node.name.value}):
                for known in _turns(file, call, around):
                    bound = _bind(node, args, tuned, known, file.names)
                    if any(isinstance(value, CommandLine) for value in known.values()):
                        bound[_OPTIONS] = CommandLine()
                    given.append((call, bound))
    for place, bound in given or [(node, {})]:
        yield from _configured(place, defaults, bound, configs)


def _around(file: FileKernels, place: cst.CSTNode, module: Known, inner: frozenset[str]) -> Iterator[Known]:
    """What is known where a call stands: in a function, what its own callers and its defaults make of its names, and
    what is known around it where it stands in another one.

    Outside of all functions, what running the file as a script makes of them.
    """
    outer = file.index.enclosing(place, cst.FunctionDef)
    if not isinstance(outer, cst.FunctionDef):
        known: Known = {"__name__": "__main__", **{name: module[name] for name in (FOLLOWED,) if name in module}}
        run(file.index.module.body, known, file.names)
        yield known
        return
    params = {param.name.value for param in _params(outer)}
    nested = file.index.enclosing(outer, cst.FunctionDef) is not None
    for above in _around(file, outer, module, inner) if nested else [module]:
        outside = {name: value for name, value in above.items() if name not in params}
        defaults = _given(_bind_defaults(outer, above, file.names))
        once = nested or outer.name.value in inner
        for _, bound in [(outer, {})] if once else _bindings(file, outer, above, inner):
            known = _given({**outside, **defaults, **bound})
            run(outer.body.body, known, file.names)
            yield known


def _given(bound: Known) -> Known:
    return {name: value for name, value in bound.items() if value is not UNKNOWN}


def _configured(
    place: cst.CSTNode, defaults: Known, bound: Known, configs: Sequence[Config]
) -> Iterator[tuple[cst.CSTNode, Known]]:
    for config in configs:
        if not set(bound) & set(config.values):
            yield config.node, {**defaults, **config.values, **bound, _TUNED: config}
    if not configs or any(set(bound) & set(config.values) for config in configs):
        yield place, {**defaults, **bound}


def _params(node: cst.FunctionDef) -> list[cst.Param]:
    return [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]


def _bind_defaults(node: cst.FunctionDef, module: Known, names: Names) -> Known:
    bound: Known = {}
    for param in _params(node):
        if param.default is not None:
            _try(param.name.value, param.default, bound, module, names)
    return bound


def _try(name: str, node: cst.BaseExpression, into: Known, known: Known, names: Names) -> None:
    into[name] = value_of(node, known, names)


_LATER = cst.Arg(cst.Name("later"), star="**")
"""Stands for the arguments that a partial call gets when it is called."""


def _arguments(call: cst.Call, name: str, names: Names) -> Sequence[cst.Arg] | None:
    """The arguments of a call of a factory, ``functools.partial(factory, ...)`` among them; None if it is no such."""
    if type(call.func) is cst.Name and call.func.value == name:
        return call.args
    first = call.args[0].value if call.args else None
    if type(first) is cst.Name and first.value == name and names.resolve(call.func) == "functools.partial":
        return [*call.args[1:], _LATER]
    return None


def _bind(node: cst.FunctionDef, args: Sequence[cst.Arg], tuned: Set[str], module: Known, names: Names) -> Known:
    """The parameters that a call gives values.

    Stars in it give those without a default, unless the autotuner sets them, and are taken to leave defaults alone.
    """
    bound: Known = {}
    if any(arg.star for arg in args):
        needed = [param.name.value for param in _params(node) if param.default is None]
        bound = {name: UNKNOWN for name in needed if name not in tuned}
    order = [param.name.value for param in (*node.params.posonly_params, *node.params.params)]
    position = 0
    for arg in args:
        shape = value_of(arg.value, module, names) if arg.star == "*" else None
        if isinstance(shape, tuple):
            for value in shape[: len(order) - position]:
                bound[order[position]] = value
                position += 1
        elif arg.star == "*":
            position = len(order)
        elif arg.star:
            continue
        elif arg.keyword is not None:
            _try(arg.keyword.value, arg.value, bound, module, names)
        elif position < len(order):
            _try(order[position], arg.value, bound, module, names)
            position += 1
    return bound


def _in_factory(node: cst.FunctionDef, bound: Known, module: Known, names: Names) -> Known:
    params = {param.name.value for param in _params(node)}
    known = {name: value for name, value in module.items() if name not in params}
    known |= _given(bound)
    run(node.body.body, known, names)
    return known


def _integers(known: Known) -> Values:
    return {name: int(value) for name, value in known.items() if isinstance(value, int) and name != FOLLOWED}


def _words(known: Known) -> dict[str, str]:
    return {name: value for name, value in known.items() if isinstance(value, str)}


# What the names of a ``for`` over written-out values are, turn by turn: ``for M, N in [(64, 64), (100, 72)]``.


def _turns(file: FileKernels, call: cst.CSTNode, known: Known) -> Iterator[Known]:
    """What is known in every turn of the loops around a call; as it was, where nothing tells."""
    loops: list[cst.For] = []
    for above in file.index.ancestors(call):
        if isinstance(above, cst.FunctionDef):
            break
        if isinstance(above, cst.For):
            loops.append(above)
    yield from _expanded(file, loops[::-1], known)


def _expanded(file: FileKernels, loops: list[cst.For], known: Known) -> Iterator[Known]:
    if not loops:
        yield known
        return
    first, *rest = loops
    target: cst.BaseExpression = first.target
    source = first.iter
    counted = isinstance(source, cst.Call) and isinstance(source.func, cst.Name) and source.func.value == "enumerate"
    if isinstance(source, cst.Call) and counted and source.args:
        source = source.args[0].value
        target = target.elements[1].value if isinstance(target, cst.Tuple) and len(target.elements) == 2 else source
    items = _items(file, source)
    if items is None:
        yield from _expanded(file, rest, known)
        return
    bound = [inner for item in items if _bind_item(file, target, item, inner := dict(known))]
    for inner in bound or [known]:
        yield from _expanded(file, rest, inner)


def _items(file: FileKernels, node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """The values that are written out, also behind a name that is bound once."""
    if isinstance(node, cst.Name):
        stores = [
            statement.value
            for statement in file.index.statements
            if isinstance(statement, cst.Assign)
            and any(isinstance(t.target, cst.Name) and t.target.value == node.value for t in statement.targets)
        ]
        return _items(file, stores[0]) if len(stores) == 1 and not isinstance(stores[0], cst.Name) else None
    if isinstance(node, (cst.List, cst.Tuple)):
        return [element.value for element in node.elements]
    return None


def _bind_item(file: FileKernels, target: cst.BaseExpression, value: cst.BaseExpression, known: Known) -> bool:
    if isinstance(target, cst.Tuple):
        parts = _items(file, value) if isinstance(value, (cst.List, cst.Tuple)) else None
        if parts is None or len(parts) != len(target.elements):
            return False
        return all(_bind_item(file, one.value, part, known) for one, part in zip(target.elements, parts, strict=True))
    if not isinstance(target, cst.Name):
        return False
    try:
        known[target.value] = evaluate(value, known, file.names)
    except NoValue:
        known.pop(target.value, None)
    return True
