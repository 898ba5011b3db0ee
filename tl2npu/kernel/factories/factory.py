"""Where kernels live in a file: prim_funcs, the functions that build them, and how they are compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, bind_static
from tl2npu.kernel.environment import Env, Helper
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.factories.compilations import (
    Compilation,
    compilation,
    decorating,
    kernel_argument,
    tuned_kernel,
    tuner_arguments,
)
from tl2npu.kernel.factories.located import Factory, Located
from tl2npu.kernel.style import dialect_of
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import HOLDS_LINES, calls_in, children, nodes_of, remembered, walk

_NAMES_MORE = (cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal)

PRIM_FUNC = "tilelang.language.prim_func"


def is_prim_func(node: cst.FunctionDef, names: Names) -> bool:
    """True for a function decorated ``@T.prim_func``, however it is spelled."""
    for decorator in node.decorators:
        target = decorator.decorator
        if type(target) is cst.Call:
            target = target.func
        if names.resolve(target) == PRIM_FUNC:
            return True
    return False


def functions(node: cst.CSTNode) -> Iterator[cst.FunctionDef]:
    """Every function definition below a node, not those inside other functions."""
    for child in children(node):
        if type(child) is cst.FunctionDef:
            yield child
        elif HOLDS_LINES[type(child)]:
            yield from functions(child)


def inner_names(node: cst.CSTNode) -> frozenset[str]:
    """Names that functions inside a node bind; tensors of prim_funcs are never in doubt."""
    found: set[str] = set()
    for child in functions(node):
        params = (*child.params.posonly_params, *child.params.params, *child.params.kwonly_params)
        found |= {param.name.value for param in params if not _is_tensor(param)}
        found |= {name for statement in child.body.body for name in assigned_names(statement)}
        found |= _names_inside(child)
    return frozenset(found)


@remembered
def _names_inside(node: cst.FunctionDef) -> frozenset[str]:
    """Remembered by node, as most functions of a file stay as they are."""
    return inner_names(node)


def _is_tensor(param: cst.Param) -> bool:
    return param.annotation is not None and type(param.annotation.annotation) is cst.Call


def _names_more(edits: Edits) -> bool:
    """Whether functions, classes or imports come or go."""
    return any(nodes_of(part, *_NAMES_MORE) for old, new in edits.replacements for part in (old, *new))


def _env_of(env: Env, now: Mapping[int, cst.FunctionDef], done: dict[int, Env]) -> Env:
    """An environment of its own, and those around it, with the helpers that are other nodes now."""
    if id(env) not in done:
        parent = _env_of(env.parent, now, done) if env.parent is not None else None
        done[id(env)] = copy = replace(env, parent=parent, values=dict(env.values))
        for name, value in env.values.items():
            if isinstance(value, Helper) and id(value.node) in now:
                copy.values[name] = Helper(now[id(value.node)], copy)
    return done[id(env)]


class FileKernels:
    """Every prim_func of a file, in text order.

    ``around``: what was worked out of the text around the prim_funcs; an edit inside of one keeps it.
    """

    index: Index
    names: Names
    evaluator: Evaluator
    module_env: Env
    located: list[Located]
    around: dict[object, object]

    def __init__(self, index: Index) -> None:
        self.index = index
        self.around = {}
        self.names = Names(index)
        self.evaluator = Evaluator(self.names)
        self.module_env = Env(shadowed=inner_names(index.module))
        bind_static(index.module.body, self.module_env, self.evaluator)
        self.located: list[Located] = []
        seen: dict[str, int] = {}
        for node in functions(index.module):
            self._collect(node, self.module_env, None, seen)
        self._standalone_compilations()

    def after(self, edits: Edits) -> FileKernels:
        """Every prim_func of the tree that edits make of this one."""
        index = self.index.after(edits.apply(self.index.module))
        edited = next((item.node for item in self.located if self._is_body_of(item, edits)), None)
        edited = edited or self._compiled_otherwise(edits)
        chain = self._chain(index.module, edited) if edited is not None else None
        return FileKernels(index) if chain is None else self._with(index, chain)

    def _is_body_of(self, item: Located, edits: Edits) -> bool:
        """Whether edits change statements of a prim_func only, and no name outside of it."""
        inside = all(any(above is item.node.body for above in self.index.ancestors(node)) for node in edits.nodes)
        return inside and not _names_more(edits)

    def _compiled_otherwise(self, edits: Edits) -> cst.FunctionDef | None:
        """The factory of which edits change nothing but the arguments of decorators that compile its kernels."""
        for factory in (item.factory for item in self.located if item.factory is not None):
            compiling = {id(found.node) for found in factory.compilations}
            compiling &= {id(decorator.decorator) for decorator in factory.node.decorators}
            if all(id(node) in compiling or self._is_below(node, compiling) for node in edits.nodes):
                return None if _names_more(edits) else factory.node
        return None

    def _is_below(self, node: cst.CSTNode, others: Set[int]) -> bool:
        return any(id(above) in others for above in self.index.ancestors(node))

    def _chain(self, module: cst.Module, node: cst.FunctionDef) -> list[tuple[cst.CSTNode, cst.CSTNode]] | None:
        """A function and all around it, outermost first, with their new nodes; None where those are unclear."""
        chain: list[tuple[cst.CSTNode, cst.CSTNode]] = [(self.index.module, module)]
        for below in (*reversed([*self.index.ancestors(node)][:-1]), node):
            old, new = (children(above) for above in chain[-1])
            place = next(place for place, child in enumerate(old) if child is below)
            if len(old) != len(new) or type(new[place]) is not type(below):
                return None
            chain.append((below, new[place]))
        return chain

    def _with(self, index: Index, chain: list[tuple[cst.CSTNode, cst.CSTNode]]) -> FileKernels:
        """The same kernels, of which one has another body."""
        made = FileKernels.__new__(FileKernels)
        made.index, made.names = index, self.names.after(index, chain)
        made.evaluator = Evaluator(made.names)
        made.around = dict(self.around)
        now = {id(old): cst.ensure_type(new, cst.FunctionDef) for old, new in chain if type(old) is cst.FunctionDef}
        envs: dict[int, Env] = {}
        factories: dict[int, Factory] = {}

        before, after = self._decorating(chain[-1][0]), made._decorating(chain[-1][1])
        if len(before) != len(after):
            return FileKernels(index)
        compiled = {id(old.node): new for old, new in zip(before, after, strict=True) if old.node is not new.node}
        lists: dict[int, list[Compilation]] = {}

        def factory_of(factory: Factory) -> Factory:
            if id(factory) not in factories:
                node = now.get(id(factory.node), factory.node)
                own = [compiled.get(id(found.node), found) for found in factory.compilations] if compiled else None
                own = lists.setdefault(id(factory.compilations), own or factory.compilations)
                factories[id(factory)] = Factory(node, _env_of(factory.env, now, envs), own)
            return factories[id(factory)]

        made.module_env = _env_of(self.module_env, now, envs)
        made.located = [
            Located(
                item.key,
                now.get(id(item.node), item.node),
                factory_of(item.factory) if item.factory is not None else None,
                _env_of(item.env, now, envs),
                made.evaluator,
                item.own,
            )
            for item in self.located
        ]
        return made

    def _decorating(self, node: cst.CSTNode) -> list[Compilation]:
        """What compiles a function above it."""
        return [*decorating(cst.ensure_type(node, cst.FunctionDef), self.names, self.index.module)]

    def _collect(self, node: cst.FunctionDef, env: Env, factory: Factory | None, seen: dict[str, int]) -> None:
        if is_prim_func(node, self.names):
            owner = factory.node.name.value + "." if factory else ""
            name = owner + node.name.value
            ordinal = seen[name] = seen.get(name, -1) + 1
            self.located.append(Located((name, ordinal), node, factory, env, self.evaluator))
            return
        inner = Env(env, shadowed=inner_names(node))
        for param in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params):
            inner.values[param.name.value] = inner.parameter(param.name.value)
        bind_static(node.body.body, inner, self.evaluator)
        own = Factory(node, inner)
        own.compilations += self._decorating(node)
        if factory is not None and factory.compilations and not own.compilations:
            own.compilations = factory.compilations
        for child in functions(node):
            self._collect(child, inner, own, seen)

    def _host_calls(self) -> Iterator[cst.Call]:
        """Every call outside of the prim_funcs."""
        prim_funcs = {id(item.node) for item in self.located}
        owners = {id(above) for item in self.located for above in self.index.ancestors(item.node)}
        for statement in self.index.module.body:
            if id(statement) in owners:
                yield from (node for node in walk(statement, prim_funcs) if type(node) is cst.Call)
            elif id(statement) not in prim_funcs:
                yield from calls_in(statement)

    def _standalone_compilations(self) -> None:
        """``tilelang.compile(factory(...), ...)`` and the like: what compiles a kernel from outside of its factory."""
        waiting = list(self._compiling_calls())
        decorated = list(self._decorated_elsewhere())
        if not waiting and not decorated:
            return
        makers = Makers(self.index, self.located)
        for found, target in waiting:
            owner = makers.factory(target)
            if isinstance(owner, Located) and found.compiler == "jit":
                continue  # it takes functions only
            _add(owner, found)
            if owner is not None and found.unnamed:
                found.name_rest(self._language_of(owner))
        for function, found in decorated:
            _add(makers.given(function), found)
        order = {id(statement): place for place, statement in enumerate(self.index.module.body)}
        for several in {id(item.compilations): item.compilations for item in self.located}.values():
            if len(several) > 1:  # in text order: what the first needs stands above all others
                several.sort(key=lambda found: order.get(id(self.index.top(found.node)), 0))

    def _language_of(self, owner: Factory | Located) -> str:
        """The language of the kernels of a factory, or of a prim_func without one."""
        made = next(item for item in self.located if item is owner or (item.factory is owner and item.factory))
        return dialect_of(made.node, self.names, made.targets)

    def _compiling_calls(self) -> Iterator[tuple[Compilation, cst.BaseExpression]]:
        """Calls that compile, with the kernel that they are given."""
        for call in self._host_calls():
            target: cst.BaseExpression | None = None
            found = compilation(call, self.names, self.index.module)
            tuned = tuned_kernel(call, self.names)
            if tuned is not None:
                found, target = tuner_arguments(call), tuned
            elif found is not None:
                target = kernel_argument(call)
            elif type(call.func) is cst.Call:
                found = compilation(call.func, self.names, self.index.module)
                target = kernel_argument(call)
            if found is not None and target is not None:
                yield found, target

    def _decorated_elsewhere(self) -> Iterator[tuple[cst.FunctionDef, Compilation]]:
        """``@tilelang.jit`` above functions that hold no kernel themselves: they may return another's."""
        holders = {id(above) for item in self.located for above in self.index.ancestors(item.node)}
        for statement in self.index.statements:
            if type(statement) is cst.FunctionDef and id(statement) not in holders:
                for found in self._decorating(statement):
                    yield statement, found


def _add(owner: Factory | Located | None, found: Compilation) -> None:
    if owner is not None and all(found.node is not known.node for known in owner.compilations):
        owner.compilations.append(found)


# Which factory a name stands for where the file compiles something.
#
# Names are looked up as Python does, from the inside out: every factory of a file may call its prim_func ``main``.

Owner = Factory | Located
"""What is compiled: a factory, or a prim_func without one."""


def called(node: cst.BaseExpression | None) -> cst.Name | None:
    """The function that ``make(...)`` or ``make(...)(...)`` calls, or the name itself."""
    while isinstance(node, cst.Call):
        node = node.func
    return node if isinstance(node, cst.Name) else None


class Makers:
    """Functions and variables of a file that are, give, or hold the kernel of one factory, or one without a factory."""

    def __init__(self, index: Index, located: Iterable[Located]) -> None:
        self._index = index
        self._bound: dict[tuple[int, str], Owner] = {}
        self._gives: dict[int, Owner] = {}
        self._holders = [item.factory.node for item in located if item.factory is not None]
        for item in located:
            if item.factory is not None:
                self._bind(item.factory.node, item.factory.node.name.value, item.factory)
            self._bind(item.node, item.node.name.value, item.factory or item)
        self._bind_givers()
        self._bind_made()
        self._anywhere: dict[str, set[Owner]] = {}
        for (_, name), factory in self._bound.items():
            self._anywhere.setdefault(name, set()).add(factory)

    def factory(self, node: cst.BaseExpression | None) -> Owner | None:
        """The factory behind what is compiled; a name that is bound elsewhere only, such as a parameter, must be the
        only one of its kind."""
        name = called(node)
        if name is None:
            return None
        found = self._seen_from(name)
        others = self._anywhere.get(name.value, set())
        return found if found is not None or len(others) != 1 else next(iter(others))

    def given(self, function: cst.FunctionDef) -> Owner | None:
        """The factory whose kernel the function returns."""
        return self._gives.get(id(function))

    def _bind(self, node: cst.CSTNode, name: str, factory: Owner) -> None:
        self._bound[id(self._index.enclosing(node, cst.FunctionDef)), name] = factory

    def _seen_from(self, name: cst.Name) -> Owner | None:
        scope = self._index.enclosing(name, cst.FunctionDef)
        while (id(scope), name.value) not in self._bound and scope is not None:
            scope = self._index.enclosing(scope, cst.FunctionDef)
        return self._bound.get((id(scope), name.value))

    def _bind_givers(self) -> None:
        """Functions that return a factory, or what one gives, and nothing else."""
        open_ends = list(self._returns())
        grown = True
        while grown:  # a function may return what another returns
            left = []
            for function, returned in open_ends:
                found = {self._seen_from(name) if name is not None else None for name in returned}
                owner = found.pop() if len(found) == 1 else None
                if owner is None:
                    left.append((function, returned))
                else:
                    self._bind(function, function.name.value, owner)
                    self._gives[id(function)] = owner
            grown = len(left) < len(open_ends)
            open_ends = left

    def _returns(self) -> Iterator[tuple[cst.FunctionDef, list[cst.Name | None]]]:
        """What each function returns that holds no kernel itself."""
        own = {id(node) for node in self._holders}
        found: dict[int, tuple[cst.FunctionDef, list[cst.Name | None]]] = {}
        for small in self._index.statements:
            if isinstance(small, cst.Return):
                function = self._index.enclosing(small, cst.FunctionDef)
                if function is not None and id(function) not in own:
                    found.setdefault(id(function), (function, []))[1].append(called(small.value))
        yield from found.values()

    def _bind_made(self) -> None:
        """``program = factory(...)``: what a factory returned, to be compiled later."""
        for small in self._index.statements:
            if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.value, cst.Call):
                target, name = small.targets[0].target, called(small.value)
                factory = self._seen_from(name) if name is not None else None
                if isinstance(target, cst.Name) and factory is not None:
                    self._bind(small, target.value, factory)
