"""The uses of an eager kernel in its file: ``f(a, b, 128)`` becomes ``f(M, N, 128)(a, b)``, ``f.compile(M=M)`` a call.

Where a call cannot be rewritten in place, or the name is passed around, or nobody in the file calls it, the name stays
what it was: a small function of that name calls the factory (:mod:`tl2npu.passes.eager.wrapper`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from tl2npu.across.receivers import Asked, asked_by, asked_in
from tl2npu.across.users import Users
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.passes.eager.extents import Axis, Hosts, axes_of, choice, is_told
from tl2npu.passes.eager.kernel import Plan
from tl2npu.passes.eager.wrapper import attribute_for
from tl2npu.passes.names.definitions import visible_uses
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import argument, names_in, nodes_of, walk

_METHODS = {"compile": None, "get_kernel_source": "get_kernel_source", "get_tir": "prim_func"}
"""Methods of an eager kernel, and what gives the same of the kernel that a factory makes."""


@dataclass(eq=False)
class _Call:
    """One use to be rewritten: ``name`` is the use, ``call`` the whole call, ``method`` the attribute between them.

    ``tensors`` are the values of the run-time parameters, in order; ``extents`` the factory's arguments in front.
    """

    name: cst.Name
    call: cst.Call
    method: str | None
    tensors: list[cst.BaseExpression] = field(default_factory=list)
    extents: list[cst.BaseExpression] = field(default_factory=list)
    moved: list[cst.Arg] = field(default_factory=list)
    renamed: list[tuple[cst.Arg, str]] = field(default_factory=list)


class _Unclear(Exception):
    """A call that cannot be rewritten in place; ``str()`` says why."""


class Callers:
    """All uses of one eager kernel. ``wrapped``: the name stays, and the factory gets another."""

    def __init__(self, index: Index, names: Names, plan: Plan, users: Users | None = None) -> None:
        self.index, self.names, self.plan = index, names, plan
        self.users = users
        self.axes = axes_of(plan)
        self.hosts = Hosts(index)
        self.wrapped = False
        self.reason = ""
        self.calls: list[_Call] = []
        self.changes: list[tuple[cst.CSTNode, str]] = []
        self.attributes: list[str] = []
        """Statements that give the function what is asked of the kernel."""

    @property
    def factory_name(self) -> str:
        """The name of the factory beside a function of the old name."""
        name = self.plan.name
        taken = {n.value for n in nodes_of(self.index.module, cst.Name)}
        wishes = [f"{name}_factory"] if name.endswith(("kernel", "kernel_")) else [f"{name.rstrip('_')}_kernel"]
        return next(n for n in (*wishes, *(f"{wishes[0]}_{k}" for k in range(2, 99))) if n not in taken)

    def read(self) -> None:
        """Look at every use. Raises :class:`Blocked` where neither way is open."""
        plan = self.plan
        scope = self.index.enclosing(plan.node, cst.FunctionDef, cst.ClassDef) or self.index.module
        if isinstance(scope, cst.ClassDef):
            raise plan.blocked(plan.node, "it is a method")
        inside = {id(name) for name in names_in(plan.node)}
        uses = [use for use in visible_uses(scope, plan.name) if id(use) not in inside]
        direct: list[_Call] = []
        for use in uses:
            found = self._call(use)
            if found is None:
                self._keep_name(f"`{plan.name}` is passed around as a value")
            elif found.method is None:
                direct.append(found)
            else:
                self._bind(found)
                self.calls.append(found)
        if not uses:
            self._keep_name("this file does not call it")
        elif self.users is not None and isinstance(scope, cst.Module) and self.users.of(plan.name):
            self._keep_name("another file calls it")
        try:
            for call in direct:
                self._bind(call)
            _apart([*self.calls, *direct])
        except _Unclear as unclear:
            self._keep_name(str(unclear))
        if self.wrapped:
            self._check_receivers([use for use in uses if self._call(use) is None])
            for call in direct:
                self._check_kept(call)
            if any(not is_told(self.axes.get(name)) for name in plan.consts) and not plan.configs:
                missing = next(name for name in plan.consts if not is_told(self.axes.get(name)))
                raise self._blocked(plan.node, f"no tensor argument determines the extent `{missing}`")
        else:
            self.calls += direct

    def _keep_name(self, why: str) -> None:
        self.wrapped, self.reason = True, self.reason or why

    def _blocked(self, node: cst.CSTNode, why: str) -> Blocked:
        return Blocked("TL104", node, f"cannot rewrite the calls of the eager kernel `{self.plan.name}`: {why}")

    def _call(self, use: cst.Name) -> _Call | None:
        above = self.index.parent(use)
        if isinstance(above, cst.Call) and above.func is use:
            return _Call(use, above, None)
        if isinstance(above, cst.Attribute) and above.value is use:
            call = self.index.parent(above)
            if above.attr.value not in _METHODS or not isinstance(call, cst.Call) or call.func is not above:
                raise self._blocked(above, f"a factory has no attribute `{above.attr.value}`")
            return _Call(use, call, above.attr.value)
        return None

    def _check_receivers(self, passed: list[cst.Name]) -> None:
        """Whoever gets the kernel as a value, here or in another file, must not ask more of it than a function can
        be given."""
        if self.users is None:
            return
        found: list[tuple[cst.CSTNode, Asked]] = []
        if passed:
            self.users.looked = True
            found += [(passed[0], asked) for asked in asked_by(self.users.path, self.index.module.code, self.plan.name)]
        for user in self.users.of(self.plan.name):
            found += [(self.plan.node, asked) for asked in asked_in(user.path, user.names)]
        for node, asked in found:
            attribute = attribute_for(asked, self.plan, self.factory_name)
            if attribute is None:
                raise self._blocked(
                    node, f"`{asked.who}` uses its attribute `{asked.attribute}`, which a function does not have"
                )
            if attribute not in self.attributes:
                self.attributes.append(attribute)
                self.changes.append((node, f"`{asked.who}` uses `{self.plan.name}.{asked.attribute}`"))

    def _check_kept(self, call: _Call) -> None:
        """A call that stays as it is must be able to tell every extent."""
        given = {arg.keyword.value for arg in call.call.args if arg.keyword is not None}
        for name, known in self.plan.consts.items():
            if not is_told(self.axes.get(name)) and known not in given and not any(arg.star for arg in call.call.args):
                raise self._blocked(call.call, f"no tensor argument determines the extent `{name}`")

    # -- one call ---------------------------------------------------------------------------------------------------

    def _bind(self, found: _Call) -> None:
        """Which argument is which parameter. Raises _Unclear, for a method Blocked."""
        try:
            given = self._arguments(found)
            self._extents(found, given)
        except _Unclear as unclear:
            if found.method is None:
                raise
            raise self._blocked(found.call, str(unclear)) from None

    def _arguments(self, found: _Call) -> dict[str, cst.BaseExpression]:
        """The tensors that a call gives, by parameter; their arguments are noted to be moved."""
        plan = self.plan
        params = [param.name.value for param in plan.node.params.params]
        run_time = [item.name for item in plan.inputs]
        given: dict[str, cst.BaseExpression] = {}
        for position, arg in enumerate(found.call.args):
            if arg.star:
                left = [name for name in run_time if name not in given]
                by_name = arg.star == "**" and not left
                if not by_name and any(name in run_time for name in params[position:]) and found.method is None:
                    raise _Unclear(f"`{code(arg)}` may contain tensors")
                continue
            name = arg.keyword.value if arg.keyword is not None else None
            if name is None:
                if position >= len(params):
                    raise _Unclear("a call has too many arguments")
                name = params[position]
            if name not in params and name not in plan.consts and name not in plan.consts.values():
                raise _Unclear(f"a call passes `{name}`, which the factory does not take")
            if name in run_time:
                given[name] = arg.value
                found.moved.append(arg)
            for own, known in plan.consts.items():
                if arg.keyword is not None and name == known and own != known:
                    found.renamed.append((arg, own))
        missing = [name for name in run_time if name not in given]
        if missing and found.method is None:
            raise _Unclear(f"a call does not pass `{missing[0]}`")
        found.tensors = [given[name] for name in run_time if name in given]
        return given

    def _extents(self, found: _Call, given: dict[str, cst.BaseExpression]) -> None:
        plan = self.plan
        stated = {arg.keyword.value for arg in found.call.args if arg.keyword is not None}
        wanted = [name for name, known in plan.consts.items() if known not in stated and name not in stated]
        if found.method is not None and any(arg.star == "**" for arg in found.call.args) and not given:
            return  # the extents may be in there
        if wanted and len(wanted) != len(plan.consts):
            raise _Unclear("a call passes some extents by name and not the others")
        for name in wanted:
            found.extents.append(self._extent(name, given, found.call))

    def _extent(self, name: str, given: dict[str, cst.BaseExpression], at: cst.Call) -> cst.BaseExpression:
        """What the host code calls an extent, else ``a.shape[0]``."""
        axes = [axis for axis in self.axes.get(name) or () if axis.tensor in given]
        sure = [axis for axis in axes if axis.when is None or self._stated(axis.when, at) == axis.holds]
        for axis in sure:
            known = self.hosts.extent(given[axis.tensor], axis.axis, at)
            if known is not None:
                return known
        for axis in sure:
            shape = self.hosts.shape(given[axis.tensor], axis.axis)
            if shape is not None:
                return shape
        either = choice(axes)
        if either is not None:
            return self._either(name, *either, given, at)
        raise _Unclear(f"no tensor argument determines the extent `{name}`")

    def _either(
        self, name: str, true: Axis, false: Axis, given: dict[str, cst.BaseExpression], at: cst.Call
    ) -> cst.BaseExpression:
        """``a.shape[1] if transposed else a.shape[0]``, with the call's own condition."""
        test = self._argument(true.when or "", at)
        first, second = (self.hosts.shape(given[axis.tensor], axis.axis) for axis in (true, false))
        if not isinstance(test, (cst.Name, cst.Attribute)) or first is None or second is None:
            raise _Unclear(f"the extent `{name}` would be computed twice")
        return cst.IfExp(test=test.deep_clone(), body=first, orelse=second)

    def _stated(self, param: str, at: cst.Call) -> bool | None:
        """The truth of a parameter where a call gives it as a literal."""
        value = self._argument(param, at)
        literal = value.value if isinstance(value, cst.Name) else ""
        return {"True": True, "False": False}.get(literal)

    def _argument(self, param: str, at: cst.Call) -> cst.BaseExpression | None:
        """What a call gives a parameter, or its default."""
        params = self.plan.params
        position = next(n for n, p in enumerate(params) if p.name.value == param)
        if any(arg.star for arg in at.args):
            return None
        return argument(at, param, position) or params[position].default

    # -- editing ----------------------------------------------------------------------------------------------------

    def edit(self, edits: Edits) -> None:
        """Rewrite the factory's arguments; :meth:`finish` adds the second call."""
        for found in self.calls:
            self._edit_arguments(found, edits)
            if found.method is not None:
                assert isinstance(found.call.func, cst.Attribute)
                edits.replace(found.call.func, self._factory(found))
            old = code(found.call.func)
            self.changes.append((found.call, f"`{old}(...)` follows the factory"))

    def _factory(self, found: _Call) -> cst.Name:
        if self.wrapped:
            found.name = cst.Name(self.factory_name)
        return found.name

    def _edit_arguments(self, found: _Call, edits: Edits) -> None:
        extents = [cst.Arg(value) for value in found.extents]
        args = found.call.args
        for position, arg in enumerate(args):
            goes = arg in found.moved
            name = next((own for other, own in found.renamed if other is arg), None)
            kept = arg if name is None else arg.with_changes(keyword=cst.Name(name))
            kept = self._hashable(kept, position)
            new = [] if goes else [kept]
            if position == 0 and extents:
                edits.replace_many(arg, [*extents, *new])
            elif goes:
                edits.remove(arg)
            elif kept is not arg:
                edits.replace(arg, kept)
        if not args and extents:
            edits.replace(found.call, found.call.with_changes(args=extents))

    def _hashable(self, arg: cst.Arg, position: int) -> cst.Arg:
        """A factory is remembered by its arguments, so that a list has to be handed over as a tuple."""
        params = [param.name.value for param in self.plan.node.params.params]
        name = arg.keyword.value if arg.keyword is not None else params[position] if position < len(params) else ""
        value = arg.value
        made = isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and value.func.value == "tuple"
        if arg.star or made or name not in self.plan.sequences or isinstance(value, cst.Tuple):
            return arg
        return arg.with_changes(value=cst.Call(cst.Name("tuple"), [cst.Arg(value)]))

    def finish(self, index: Index) -> Index:
        """Put ``(a, b)`` behind the rewritten calls, and what stands for a method."""
        edits = Edits(index)
        for found in self.calls:
            made = cst.ensure_type(index.parent(found.name), cst.Call)
            # A parenthesis around the old call belongs around the new one.
            bare = made.with_changes(lpar=(), rpar=())
            new: cst.BaseExpression
            if found.method is None:
                values = found.tensors
                comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
                args = [
                    cst.Arg(value, comma=comma if n < len(values) - 1 else cst.MaybeSentinel.DEFAULT)
                    for n, value in enumerate(values)
                ]
                new = cst.Call(bare, args)
            elif (attribute := _METHODS[found.method]) is not None:
                new = cst.Attribute(bare, cst.Name(attribute))
                new = cst.Call(new) if attribute == "get_kernel_source" else new
            else:
                continue
            edits.replace(made, new.with_changes(lpar=made.lpar, rpar=made.rpar))
        return index.after(edits.apply(index.module))


def _apart(calls: list[_Call]) -> None:
    """Calls inside moved arguments of others cannot be edited together with them."""
    for outer in calls:
        inside = {id(node) for arg in outer.moved for node in walk(arg)}
        if any(other is not outer and id(other.call) in inside for other in calls):
            raise _Unclear("one of its calls is an argument of another")
