"""Reads one prim_func out of the syntax tree into the kernel model.

The reader walks the body once, in order, like an interpreter over symbolic values: names have the value of their last
assignment, names that a loop or a branch may have changed become fresh unknowns, macros and helpers of the same file
are read in place with their parameters bound to the caller's expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import cast

import libcst as cst

from tl2npu.dialects.ascend import similar
from tl2npu.dialects.catalogue import Kind, Operator
from tl2npu.kernel import languages
from tl2npu.kernel.bindings import (
    assigned_names,
    bind_static,
    body_of,
    has_return,
    is_arithmetic,
    single_assignments,
    target_names,
    value_of,
)
from tl2npu.kernel.conditions import as_if
from tl2npu.kernel.environment import NOWHERE, Env, Helper, entered
from tl2npu.kernel.even_sizes import sizes_to_be_even
from tl2npu.kernel.expressions import Evaluator, code
from tl2npu.kernel.loops import either_loop, loop_bounds
from tl2npu.kernel.model import (
    Alloc,
    Branch,
    Buffer,
    Copy,
    Inlined,
    Kernel,
    Launch,
    Let,
    Loop,
    Memory,
    Op,
    Opaque,
    Operand,
    Range,
    Scalar,
    ScopeBlock,
    Side,
    Stmt,
    Store,
    Sync,
)
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.style import Dialect, dialect_of, launches_in, unprofiled
from tl2npu.kernel.symbolic import Sym, const, var
from tl2npu.kernel.tensors import is_used, parameters, second_shape
from tl2npu.source.named_by_call import returns
from tl2npu.source.tree import SubclassesOf

_MEMORY = {
    "l1": Memory.L1,
    "l0a": Memory.L0A,
    "l0b": Memory.L0B,
    "l0c": Memory.L0C,
    "ub": Memory.UB,
    "shared": Memory.L1,  # until tl2npu.kernel.memory.inferred has seen how it is used
    "fragment": Memory.L0C,
    "var": Memory.VAR,
}
_ON_TILES = (Kind.GEMM, Kind.MMA, Kind.REDUCE, Kind.FILL, Kind.TILE)
_MAX_INLINE_DEPTH = 50
_MOST_INLINED = 4000
_IS_SMALL, _IS_EXPRESSION = SubclassesOf(cst.BaseSmallStatement), SubclassesOf(cst.BaseExpression)
_SIDES = {"C": Side.CUBE, "V": Side.VECTOR, "CUBE": Side.CUBE, "VECTOR": Side.VECTOR}


def _pairs(call: cst.Call) -> list[tuple[str | None, cst.BaseExpression]]:
    return [(arg.keyword.value if arg.keyword else None, arg.value) for arg in call.args]


class Reader:
    """Reads one kernel; use :func:`read_kernel`."""

    def __init__(self, evaluator: Evaluator, dialect: Dialect = "ascend", apart: Set[int] = frozenset()) -> None:
        self.evaluator = evaluator
        self.dialect = dialect
        self.is_gpu = dialect == "gpu"
        self.names = evaluator.names
        self.buffers: dict[str, Buffer] = {}
        self.second: dict[int, Buffer] | None = {} if dialect != "npuir" else None
        self.apart = apart
        self.problems: list[tuple[cst.CSTNode, str, str]] = []
        self.inlining: list[cst.FunctionDef] = []
        self.inlined = 0
        self.launch: Launch | None = None
        self.core: str | None = None
        self.cid: str | None = None
        self.vid: str | None = None
        self._serial = 0

    def fresh(self, name: str) -> Sym:
        """A new unknown that a name stands for from here on; ``@`` separates the spelling from the instance."""
        self._serial += 1
        return var(f"{name}@{self._serial}")

    def operator(self, func: cst.BaseExpression, env: Env) -> Operator | None:
        """The catalogue entry of a called expression."""
        if type(func) is cst.Name and env.lookup(func.value) is not None:
            value = env.lookup(func.value)
            if not (isinstance(value, Sym) and value == var(func.value)):
                return None
        resolved = self.names.resolve(func)
        if resolved is None:
            return None
        return languages.lookup(self.dialect, resolved)

    def block(self, statements: Sequence[cst.CSTNode], env: Env, via: tuple[cst.CSTNode, ...]) -> list[Stmt]:
        """Read a list of statements."""
        result: list[Stmt] = []
        for statement in statements:
            for part in statement.body if type(statement) is cst.SimpleStatementLine else [statement]:
                before = env.snapshot()
                if _IS_SMALL[type(part)]:
                    found = self.small(cast("cst.BaseSmallStatement", part), env, via)
                else:
                    found = self.compound(part, env, via)
                for stmt in found:
                    if stmt.env is NOWHERE:
                        stmt.env = before  # the names in scope before the statement
                result += found
        return result

    def small(self, node: cst.BaseSmallStatement, env: Env, via: tuple[cst.CSTNode, ...]) -> list[Stmt]:
        """Read a simple statement."""
        if type(node) is cst.Expr:
            if type(node.value) is cst.Call:
                return self.call(node, node.value, env, via)
            if isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis)):
                return []
        if type(node) is cst.Return and type(node.value) is cst.Call and via:
            return self.call(node, node.value, env, via)
        if type(node) is cst.Pass or (type(node) is cst.Return and node.value is None):
            return []
        if type(node) is cst.AnnAssign and node.value is not None:
            return self.assign(node, node.target, node.value, env, via)
        if type(node) is cst.Assign and len(node.targets) == 1:
            return self.assign(node, node.targets[0].target, node.value, env, via)
        if type(node) is cst.AugAssign:
            target = self.evaluator.operand(node.target, env)
            value = self.evaluator.scalar(node.value, env)
            if target is not None:
                return [Store(node, target, value, True, via=via)]
            if type(node.target) is cst.Name:
                fresh = self.fresh(node.target.value)
                env.values[node.target.value] = fresh
                return [Let(node, node.target.value, Scalar(node.value, fresh, value.loads), via=via)]
        if type(node) is cst.Assert:
            return []
        return [self.opaque(node, env, via, "this statement is not supported")]

    def assign(
        self,
        node: cst.BaseSmallStatement,
        target: cst.BaseExpression,
        value: cst.BaseExpression,
        env: Env,
        via: tuple[cst.CSTNode, ...],
    ) -> list[Stmt]:
        """Read ``target = value``."""
        pairs = single_assignments(target, value)
        if len(pairs) > 1:
            result: list[Stmt] = []
            before = env.snapshot()  # every value is taken before any name is bound
            for left, right in pairs:
                own = before.snapshot()
                result += self.assign(node, left, right, own, via)
                env.values.update({n: v for n, v in own.values.items() if v is not before.values.get(n)})
            return result
        target, value = pairs[0]
        if type(target) is cst.Subscript:
            operand = self.evaluator.operand(target, env)
            if operand is not None:
                return [Store(node, operand, self.evaluator.scalar(value, env), False, via=via)]
        if type(target) is cst.Name:
            name = target.value
            if type(value) is cst.Call:
                alloc = self.allocation(name, value, env, node)
                if alloc is not None:
                    env.values[name] = alloc
                    self.buffers[self._unique(name)] = alloc
                    return [Alloc(node, alloc, via=via)]
                if self._helper(value.func, env) is not None:
                    inlined = self.inline(node, value, env, via)
                    env.values[name] = self.fresh(name)
                    return inlined
                op = None if self.evaluator.dtype(value.func, env) in ITEM_SIZE else self.operator(value.func, env)
                if op is not None and op.kind is Kind.TYPE and self.evaluator.buffers_in(value, env):
                    view = second_shape(name, value, env, self.evaluator, node) if self.second is not None else None
                    if self.second is not None and view is not None and view.index not in {*self.second, *self.apart}:
                        env.values[name] = self.second[view.index] = self.buffers[self._unique(name)] = view
                        return []
                    return [
                        self.opaque(node, env, via, f"`{name} = {code(value)}`: reshaped tensors are not supported")
                    ]
            scalar = self.evaluator.scalar(value, env)
            bound = value_of(name, value, env, self.evaluator)
            if isinstance(bound, Sym) and not is_arithmetic(scalar.sym):
                bound = self.fresh(name)
                if type(value) is cst.Call and self._is_core_number(value):
                    self.core = str(bound)
            env.values[name] = bound
            if isinstance(bound, Buffer):
                return []
            return [Let(node, name, scalar, via=via, bound=bound if isinstance(bound, Sym) else None)]
        for name in target_names(target):
            env.values[name] = self.fresh(name)
        return [self.opaque(node, env, via, "this assignment is not supported")]

    def _is_core_number(self, call: cst.Call) -> bool:
        resolved = self.names.resolve(call.func) or ""
        return resolved == "tilelang.language.get_block_binding" and [code(arg.value) for arg in call.args] == ["1"]

    def _unique(self, name: str) -> str:
        if name not in self.buffers:
            return name
        count = 2
        while f"{name}#{count}" in self.buffers:
            count += 1
        return f"{name}#{count}"

    def allocation(self, name: str, call: cst.Call, env: Env, node: cst.CSTNode, depth: int = 0) -> Buffer | None:
        """The buffer that ``T.alloc_*(...)`` makes, also through a helper that only returns such a call."""
        op = self.operator(call.func, env)
        if op is None:
            helper = self._helper(call.func, env)
            if helper is None or depth > _MAX_INLINE_DEPTH:
                return None
            results = [s for s in returns(helper.node) if type(s.value) is cst.Call]
            inner = entered(helper, call, env)
            if len(results) != 1 or inner is None:
                return None
            bind_static([s for s in body_of(helper.node) if not has_return(s)], inner, self.evaluator)
            assert type(results[0].value) is cst.Call
            return self.allocation(name, results[0].value, inner, node, depth + 1)
        if op.kind is not Kind.ALLOC:
            return None
        bound = self._bind(op, call)
        if bound is None:
            return None
        shape_node = bound.get("shape")
        shape_nodes = self.evaluator.sequence(shape_node, env) if shape_node is not None else ()
        dtype_node = bound.get("dtype")
        return Buffer(
            name,
            _MEMORY[op.memory or "shared"],
            tuple(self.evaluator.sym(item, item_env) for item, item_env in shape_nodes),
            tuple(item for item, _ in shape_nodes),
            self.evaluator.dtype(dtype_node, env) if dtype_node is not None else "",
            call,
            op.name,
            node,
            outside=self.launch is None,
        )

    def _variable(self, node: cst.BaseExpression, env: Env) -> Operand | None:
        """A variable that was assigned before: its name stands for that value, and a fill gives it another."""
        name = node.value if type(node) is cst.Name else ""
        known = {b.name: b for b in self.buffers.values() if b.memory is Memory.VAR}
        if name in known:
            env.values[name] = self.fresh(name)
        return Operand(known[name], None, node) if name in known else None

    def _bind(self, op: Operator, call: cst.Call) -> dict[str, cst.BaseExpression] | None:
        if any(arg.star for arg in call.args):
            return None
        try:
            bound = op.bind(_pairs(call))
        except TypeError as error:
            self.problems.append((call, "TL902", f"{op.name}: {error}"))
            return None
        flat: dict[str, cst.BaseExpression] = {}
        for name, value in bound.items():
            if _IS_EXPRESSION[type(value)]:
                flat[name] = cast("cst.BaseExpression", value)
            elif isinstance(value, (tuple, list)):
                flat.update({f"{name}{i}": v for i, v in enumerate(value) if isinstance(v, cst.BaseExpression)})
        return flat

    def call(self, node: cst.BaseSmallStatement, call: cst.Call, env: Env, via: tuple[cst.CSTNode, ...]) -> list[Stmt]:
        """Read a call statement: an operator of the catalogue, a macro, a helper."""
        op = self.operator(call.func, env)
        if op is None:
            return self.inline(node, call, env, via)
        op = languages.half_rewritten(self.dialect, op, _pairs(call))
        bound = self._bind(op, call)
        if bound is None:
            return [self.opaque(node, env, via, f"this call of T.{op.name} does not match its signature")]
        if op.kind is Kind.SYNC:
            return [Sync(node, call, op, {k: self.evaluator.scalar(v, env) for k, v in bound.items()}, via=via)]
        args: dict[str, Operand | Scalar] = {}
        for name, value in bound.items():
            found = self.evaluator.operand(value, env)
            if found is None and op.kind is Kind.FILL and op.takes_buffer(name):
                found = self._variable(value, env)
            args[name] = found or self.evaluator.scalar(value, env)
        for name, value in bound.items():
            if op.kind in _ON_TILES and op.takes_buffer(name) and not isinstance(args[name], Operand):
                return [self.opaque(node, env, via, f"cannot tell which tile `{code(value)}` refers to")]
        if op.kind is Kind.COPY and op.name == "copy":
            src, dst = args.get("src"), args.get("dst")
            if isinstance(src, Operand) and isinstance(dst, Operand):
                options = {k: v for k, v in args.items() if isinstance(v, Scalar)}
                return [Copy(node, call, src, dst, options, via=via)]
            return [self.opaque(node, env, via, "cannot tell which buffers this copy reads and writes")]
        return [Op(node, call, op, args, via=via)]

    def _helper(self, func: cst.BaseExpression, env: Env) -> Helper | None:
        value = env.lookup(func.value) if type(func) is cst.Name else None
        return value if isinstance(value, Helper) else None

    def inline(
        self, node: cst.BaseSmallStatement, call: cst.Call, env: Env, via: tuple[cst.CSTNode, ...]
    ) -> list[Stmt]:
        """Read a macro or helper of the same file in place."""
        helper = self._helper(call.func, env)
        again = helper is not None and helper.node in self.inlining
        many = len(via) >= _MAX_INLINE_DEPTH or self.inlined >= _MOST_INLINED
        inner = entered(helper, call, env) if helper and not again and not many else None
        if helper is None or inner is None:
            touched = self.evaluator.buffers_in(call, env)
            if helper is not None and not again and many:
                self.problems.append(
                    (node, "TL903", f"the macro calls that lead to `{code(call.func)}` are nested too deeply")
                )
            elif touched:
                own = self.evaluator.names.operator(call.func)
                why = f"is not a TileLang operator{similar(own, 'is')}" if own else "cannot be analysed"
                why = "calls itself" if again else why
                text = f"cannot follow the buffers that `{code(call.func)}` takes: it {why}"
                self.problems.append((node, "TL903", text))
            return [Opaque(node, f"this call of `{code(call.func)}` is not supported", touched, via=via)]
        self.inlined += 1
        self.inlining.append(helper.node)
        body = self.block(body_of(helper.node), inner, (*via, node))
        self.inlining.pop()
        return [Inlined(node, helper.node.name.value, helper.node, body, via=via)]

    def compound(self, node: cst.CSTNode, env: Env, via: tuple[cst.CSTNode, ...]) -> list[Stmt]:
        """Read a compound statement."""
        if type(node) is cst.With:
            return self.with_block(node, env, via)
        if type(node) is cst.For:
            return self.loop(node, env, via)
        if type(node) is cst.While:
            self._forget(node, env)
            cond = self.evaluator.scalar(node.test, env)
            body = self.block(body_of(node), env, via)
            self._forget(node, env)
            return [Loop(node, "while", (), body, None, loads=cond.loads, via=via)]
        if type(node) is cst.If:
            return [self.branch(node, env, via)]
        if type(node) is cst.FunctionDef:
            env.values[node.name.value] = Helper(node, env)
            return []
        self._forget(node, env)
        return [self.opaque(node, env, via, "this compound statement is not supported")]

    def _forget(self, node: cst.CSTNode, env: Env) -> None:
        """Names that the statement may change are unknown from here on."""
        for name in sorted(assigned_names(node)):
            if env.lookup(name) is not None and not isinstance(env.lookup(name), (Buffer, Helper)):
                env.values[name] = self.fresh(name)

    def branch(self, node: cst.If, env: Env, via: tuple[cst.CSTNode, ...]) -> Branch:
        """Read ``if``/``elif``/``else``; both sides may run."""
        cond = self.evaluator.scalar(node.test, env)
        before = env.snapshot()
        then = self.block(body_of(node), env, via)
        after_then = dict(env.values)
        env.values.clear()
        env.values.update(before.values)
        orelse: list[Stmt] = []
        if type(node.orelse) is cst.If:
            orelse = [self.branch(node.orelse, env, via)]
        elif node.orelse is not None:
            orelse = self.block(body_of(node.orelse), env, via)
        for name in set(after_then) | set(env.values):
            left, right = after_then.get(name), env.values.get(name)
            if left is right or (isinstance(left, Sym) and left == right):
                continue
            # a buffer allocated in one branch only stays known by its name; another name for it means that branch only
            own = [b for b in (left, right) if isinstance(b, Buffer) and b.name.partition("#")[0] == name]
            env.values[name] = own[0] if own else self.fresh(name)
        return Branch(node, cond, then, orelse, via=via, env=before)

    def loop(self, node: cst.For, env: Env, via: tuple[cst.CSTNode, ...]) -> list[Stmt]:
        """Read a ``for`` over range, T.serial, T.Parallel, T.Pipelined, ..."""
        self._forget_carried(node, env)
        call = node.iter if type(node.iter) is cst.Call else None
        if self.is_gpu and type(node.iter) is cst.IfExp:
            call = either_loop(node.iter, self.operator, env, self.evaluator)
        op = self.operator(call.func, env) if call is not None else None
        kind, bounds, stages = loop_bounds(call, op, env, self.evaluator)
        targets = [node.target] if type(node.target) is cst.Name else None
        if type(node.target) is cst.Tuple:
            targets = [e.value for e in node.target.elements if type(e.value) is cst.Name]
        if kind is None or targets is None or call is None or len(targets) != len(bounds):
            self._forget(node, env)
            return [self.opaque(node, env, via, f"a loop over `{code(node.iter)}` is not supported")]
        ranges = []
        for target, (start_node, stop_node, step_node) in zip(targets, bounds, strict=False):
            assert type(target) is cst.Name
            start = self.evaluator.sym(start_node, env) if start_node else const(0)
            stop = self.evaluator.sym(stop_node, env)
            fresh = self.fresh(target.value)
            step = self.evaluator.sym(step_node, env) if step_node else None
            env.values[target.value] = fresh
            ranges.append(Range(target.value, fresh, start, stop - start, stop_node, start_node, step))
        loads = self.evaluator.loads(call, env)
        body = self.block(body_of(node), env, via)
        self._forget_carried(node, env)
        return [Loop(node, kind, tuple(ranges), body, call, stages, loads, via=via)]

    def _forget_carried(self, node: cst.For, env: Env) -> None:
        carried = {name for stmt in body_of(node) for name in assigned_names(stmt)}
        for name in sorted(carried):
            value = env.lookup(name)
            if value is not None and not isinstance(value, (Buffer, Helper)):
                env.values[name] = self.fresh(name)

    def with_block(self, node: cst.With, env: Env, via: tuple[cst.CSTNode, ...]) -> list[Stmt]:
        """Read ``with T.Scope(...)`` and the launch ``with T.Kernel(...)``; ranges of a profiler are not there."""
        items = unprofiled(node, self.names) if self.is_gpu else node.items
        if not items:
            return self.block(body_of(node), env, via)
        if len(items) == 1 and type(call := items[0].item) is cst.Call:
            item = items[0]
            op = self.operator(call.func, env)
            if op is not None and op.kind is Kind.SCOPE and call.args:
                side = _SIDES.get(str(self.evaluator.static(call.args[0].value, env)).upper())
                if side is not None:
                    return [ScopeBlock(node, side, self.block(body_of(node), env, via), via=via)]
            if op is not None and op.kind is Kind.SYNC and op.name == "rs":
                return [ScopeBlock(node, Side.NONE, self.block(body_of(node), env, via), via=via)]
            if op is not None and op.kind is Kind.LAUNCH and self.launch is None:
                self._read_launch(node, item, call, op, env)
                return self.block(body_of(node), env, via)
        written = as_if(node, self.names)
        if written is not None:
            branch = self.branch(written, env, via)
            branch.node = node
            return [branch]
        self._forget(node, env)
        heads = ", ".join(code(item.item) for item in node.items)
        second = "a second launch" if launches_in(node, self.names) else "this block is not supported"
        return [self.opaque(node, env, via, f"{second}, `with {heads}`")]

    def _read_launch(self, node: cst.With, item: cst.WithItem, call: cst.Call, op: Operator, env: Env) -> None:
        positional = [arg.value for arg in call.args if arg.keyword is None]
        keywords = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        name = item.asname.name if item.asname is not None else None
        targets: tuple[str, ...] = (name.value,) if type(name) is cst.Name else ()
        if type(name) is cst.Tuple:
            targets = tuple(code(element.value) for element in name.elements)
        threads, npu = keywords.get("threads"), keywords.get("is_npu")
        self.launch = Launch(
            node,
            item,
            call,
            tuple(self.evaluator.sym(value, env) for value in positional),
            self.evaluator.scalar(threads, env) if threads is not None else None,
            npu is not None and self.evaluator.static(npu, env) is True,
            targets,
            tuple(self.evaluator.sym(size, env) for size in sizes_to_be_even(threads)),
        )
        for i, target in enumerate(targets):
            fresh = self.fresh(target)
            env.values[target] = fresh
            if i == 0:
                self.cid = str(fresh)
            elif i == (len(positional) if self.dialect == "npuir" else 1) and target != "_":
                self.vid = str(fresh)

    def opaque(self, node: cst.CSTNode, env: Env, via: tuple[cst.CSTNode, ...], why: str) -> Opaque:
        """Something that is not understood; it is a problem only if it names a buffer."""
        for name in sorted(assigned_names(node)):
            env.values[name] = self.fresh(name)
        return Opaque(node, why, self.evaluator.buffers_in(node, env), via=via)


def read_kernel(node: cst.FunctionDef, outer: Env, evaluator: Evaluator, targets: Iterable[object] = ()) -> Kernel:
    """Read a prim_func.

    ``outer`` holds what the module and the factory bind, ``targets`` what it is compiled for, as far as known. The
    result always exists; what could not be read stands in ``Kernel.problems`` as (node, rule code, message) and in
    :class:`Opaque` statements.
    """
    dialect = dialect_of(node, evaluator.names, targets)
    found, both = _read(node, outer, Reader(evaluator, dialect))
    while both:
        found, more = _read(node, outer, Reader(evaluator, dialect, both))
        both = both | more if more else more
    return found


def _read(node: cst.FunctionDef, outer: Env, reader: Reader) -> tuple[Kernel, frozenset[int]]:
    """The kernel, and the positions of tensors that it uses by their own shape and by a second one."""
    env = Env(outer)
    tensors, scalars = parameters(node, outer, reader.evaluator, reader.operator)
    env.values.update({name: var(name) for name in scalars} | {tensor.name: tensor for tensor in tensors})
    body = reader.block(body_of(node), env, ())
    second = reader.second or {}
    both = frozenset(n for n in second if is_used({tensor for tensor in tensors if tensor.index == n}, body))
    params = [second.get(tensor.index, tensor) for tensor in tensors]
    buffers = {param.name: param for param in params} | reader.buffers
    rest = (reader.cid, reader.vid, reader.problems, reader.dialect, reader.core)
    return Kernel(node.name.value, node, params, scalars, reader.launch, body, buffers, *rest), both
