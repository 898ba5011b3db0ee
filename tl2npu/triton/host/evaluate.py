"""A symbolic reading of host functions: the shapes of tensors and the launches of kernels."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tl2npu.triton.host.decorators import one_expression
from tl2npu.triton.host.expressions import HostExpressions
from tl2npu.triton.host.kin import type_of
from tl2npu.triton.host.methods import applied
from tl2npu.triton.host.torch_names import DTYPES, annotated, assigned, dtype_of, is_float, is_part
from tl2npu.triton.host.values import Dict, HostValue, Int, Lambda, Tensor, Unknown, optional
from tl2npu.triton.host.variants import normal


class Host(HostExpressions):
    """Reads one function, statement by statement."""

    def parameters(self) -> None:
        """The parameters of the function; those of ``backward`` are like what ``forward`` returns."""
        assert self.function is not None
        args = self.function.args
        if self.function.name == "backward":
            gradients = args.args[applied(self.function, self.owner, self.functions) :]
            self.evidence.gradients |= {(self.function.lineno, arg.arg) for arg in gradients}
            for arg, value in zip(gradients, self.evidence.returned.get(self.owner, ()), strict=False):
                if isinstance(value, Tensor) and value.shape is not None:
                    self.evidence.tensors[self.function.lineno, arg.arg] = [(len(value.shape), value.dtype)]
        defaults = dict(zip(reversed([a.arg for a in args.args]), reversed(args.defaults), strict=False))
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            self.env[arg.arg] = self.parameter(self.function.lineno, arg, defaults.get(arg.arg))

    def parameter(self, line: int, arg: ast.arg, default: ast.expr | None) -> HostValue:
        """What a parameter of the function in ``line`` is, by its calls, its annotation and its default."""
        name = arg.arg
        none = self.assumed.get(f"{name} is None")
        if none:
            return None
        if (tensor := self.given_tensor(line, arg)) is not None:
            both = none is None and self.evidence.both_ways(line, name)
            return replace(tensor, test=f"{name} is None") if both else tensor
        if default is None and (passed := self.passed_type(name)):
            return Unknown(f"torch.{passed}")
        if annotated(arg, "float") or self.is_float(name, default):
            return Unknown(name, number=True)
        if (text := self.evidence.text(line, name)) is not None:
            self.absent.add(name)
            return text
        told = isinstance(default, ast.Constant) and (
            (default.value is None and none is None) or isinstance(default.value, str)
        )
        if told and self.never(name):
            assert isinstance(default, ast.Constant)
            self.absent.add(name)
            return None if default.value is None else str(default.value)
        return Unknown(name)

    def given_tensor(self, line: int, arg: ast.arg) -> Tensor | None:
        """A parameter that is a tensor for all that is known of it; None for others."""
        name = arg.arg
        passed, dtypes = self.evidence.of(line, name)
        dtypes = self.passed_types(f"{name}.dtype") or dtypes
        rank = self.given.sure.get(name, passed)  # what the function unpacks is sure
        guess = self.given.guessed.get(name) if rank is None else None
        if rank is None and guess is None and not dtypes and not annotated(arg, "Tensor"):
            return None
        dtype = next(iter(dtypes)) if len(dtypes) == 1 else "+".join(sorted(dtypes)) or None
        found = self.tensor(name, rank, self.dtype(name) or dtype, guess)
        return replace(found, gradient=(line, name) in self.evidence.gradients)

    def is_float(self, name: str, default: ast.expr | None) -> bool:
        """True for a parameter that is a float by its default or in a call of the file."""
        assert self.function is not None
        known = isinstance(default, ast.Constant) and isinstance(default.value, float)
        return known or (self.function.lineno, name) in self.evidence.floats

    def dtype(self, name: str) -> str | None:
        """The element type that a tensor is assumed to have."""
        tests = (text.partition(" == ") for text, holds in self.assumed.items() if holds)
        return next((DTYPES.get(right) for left, _, right in tests if left == f"{name}.dtype"), None)

    def passed_types(self, text: str) -> set[str]:
        """The element types, in the calls that agree with what is assumed, of ``x.dtype`` or a parameter that is one.

        Empty where no call shows it.
        """
        assert self.function is not None
        calls = self.evidence.agreeing(self.function.lineno, self.assumed)
        found = [self.types] if self.types else [call.types for call in calls]
        return {types[text] for types in found if text in types}

    def passed_type(self, name: str) -> str | None:
        """The element type that calls pass for a parameter, if it is one only."""
        assert self.function is not None
        if not self.types and not self.assumed:
            return self.evidence.dtype(self.function.lineno, name)
        found = self.passed_types(name)
        return found.pop() if len(found) == 1 else None

    def never(self, name: str) -> bool:
        """True for a parameter that no call of the file is seen to pass, of a function that can be called by name."""
        assert self.function is not None
        return not self.owner and (self.function.lineno, name) not in self.evidence.passed

    # statements ---------------------------------------------------------------------------------------------------

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Read statements in order; names that branches and loops set are unknown behind them."""
        for stmt in body:
            self.stmt = stmt
            match stmt:
                case ast.Assign(targets=[target]):
                    self.assign(target, self.eval(stmt.value), stmt.value)
                case ast.AnnAssign() if stmt.value is not None:
                    self.assign(stmt.target, self.eval(stmt.value), stmt.value)
                case ast.AugAssign(target=ast.Name()):
                    self.eval(stmt.value)
                    self.forget({stmt.target.id})  # type: ignore[union-attr]
                case ast.If() if (decided := self.decided(stmt.test)) is not None:
                    self.run(stmt.body if decided else stmt.orelse)
                case ast.If():
                    self.eval(stmt.test)
                    before = dict(self.env)
                    self.narrow(stmt.test, True)
                    self.run(stmt.body)
                    one, self.env = self.env, dict(before)
                    self.narrow(stmt.test, False)
                    self.run(stmt.orelse)
                    self.merge(before, one, stmt)
                    if isinstance(stmt.body[-1], ast.Raise):
                        self.learn(stmt.test, False)
                case ast.For() | ast.While():
                    self.forget(assigned(stmt))
                    self.run(stmt.body)
                    self.forget(assigned(stmt))
                case ast.Match():
                    self.eval(stmt.subject)
                    before = dict(self.env)
                    for way in stmt.cases:
                        self.env = dict(before)
                        self.forget(assigned(way.pattern))
                        self.run(way.body)
                    self.env = before
                    self.forget(assigned(stmt))
                case ast.With():
                    self.run(stmt.body)
                case ast.Try():
                    self.attempt(stmt)
                case ast.FunctionDef():
                    if (returned := one_expression(stmt)) is not None:
                        self.env[stmt.name] = Lambda(tuple(arg.arg for arg in stmt.args.args), returned)
                case ast.Expr() | ast.Return():
                    value = self.eval(stmt.value) if stmt.value is not None else None
                    if isinstance(stmt, ast.Return):
                        self.returns(value)
                case _:
                    for node in ast.iter_child_nodes(stmt):
                        if isinstance(node, ast.expr):
                            self.eval(node)
                    if isinstance(stmt, ast.Assert):
                        self.learn(stmt.test, True)

    def learn(self, test: ast.expr, holds: bool) -> None:
        """The element types of tensors that an assertion names. Of several that it allows, one is a case of its own."""
        for found in alike(test, holds):
            names = [node.id for node in found.tensors if isinstance(node, ast.Name)]
            asked = {kind: f"{name}.dtype == {kind}" for name in names[:1] for kind in found.kinds}
            kinds = [kind for kind, test in asked.items() if self.assumed.get(test)]
            kinds = kinds or [kind for kind, test in asked.items() if test not in self.assumed]
            known = {value.dtype for name in names if isinstance(value := self.env.get(name), Tensor) and value.dtype}
            dtype = "+".join(DTYPES[kind] for kind in kinds) or (known.pop() if len(known) == 1 else None)
            if len(kinds) > 1 and dtype is not None:
                self.listed[dtype] = asked[kinds[0]]
            for name in names:
                value = self.env.get(name)
                if isinstance(value, Unknown) and not value.number:
                    value = self.tensor(name, self.ranks.sure.get(name), None, self.ranks.guessed.get(name))
                if isinstance(value, Tensor) and value.dtype is None:
                    self.env[name] = replace(value, dtype=dtype)

    def attempt(self, stmt: ast.Try) -> None:
        """``try``: a handler begins anywhere in the body, and what is behind the statement may follow a handler."""
        before = dict(self.env)
        self.run(stmt.body)
        after = self.env
        changed = {name for part in stmt.body for name in assigned(part)}
        for handler in stmt.handlers:
            self.env = dict(before)
            self.forget(changed)
            self.run(handler.body)
        self.env = after
        for handler in stmt.handlers:
            if not isinstance(handler.body[-1], (ast.Return, ast.Raise)):
                self.forget(changed | assigned(handler))
        self.run([*stmt.orelse, *stmt.finalbody])

    def narrow(self, test: ast.expr, taken: bool) -> None:
        """In a branch on ``x is None`` it is known whether ``x`` is None."""
        text, holds = normal(test)
        name, _, rest = text.partition(" is ")
        value = self.env.get(name)
        if rest == "None" and isinstance(value, (Tensor, Unknown)) and value.test == text:
            self.env[name] = None if holds == taken else replace(value, test="")
        elif rest == "None" and name in self.absent and value is None and holds != taken:
            self.env[name] = Tensor(name, None, None)

    def returns(self, value: HostValue) -> None:
        """What the function returns shows what its callers get."""
        if self.function is not None and self.function.name == "forward":
            self.evidence.returned[self.owner] = value if isinstance(value, tuple) else (value,)
        elif self.function is not None and isinstance(value, tuple):
            assert self.stmt is not None
            ways = self.evidence.results.setdefault(self.function.lineno, {})
            ways[self.stmt.lineno] = tuple(self.elsewhere(item) for item in value)
        elif self.function is not None:
            tensor = isinstance(value, Tensor) and not value.test and isinstance(self.function.body[-1], ast.Return)
            found = (value.dtype or "?") if isinstance(value, Tensor) and tensor else ""
            self.evidence.made.setdefault(self.function.lineno, set()).add(found)

    def elsewhere(self, value: HostValue) -> HostValue:
        """A value with the numbers that are known of it, to be used outside of the function."""
        if isinstance(value, Int):
            return Int(value.value.substitute(self.numbers))
        if isinstance(value, Tensor) and value.shape is not None:
            return replace(value, shape=tuple(extent.substitute(self.numbers) for extent in value.shape))
        return value

    def merge(self, before: dict[str, HostValue], one: dict[str, HostValue], stmt: ast.If) -> None:
        """Names that the branches set differently: tensors keep what both have, others are unknown.

        What a branch was told of other names, as that one is None, holds in that branch only.
        """
        stops = [bool(part) and isinstance(part[-1], (ast.Return, ast.Raise)) for part in (stmt.body, stmt.orelse)]
        if stops[0]:
            return
        if stops[1]:
            self.env = one
            return
        changed = assigned(stmt)
        self.env |= {name: value for name, value in before.items() if name not in changed}
        for name in changed:
            if name not in self.env or name not in one:  # who uses it behind has come through the branch that sets it
                self.env |= {name: one[name]} if name in one else {}
                continue
            here, there = self.env[name], one[name]
            if here == there:
                continue
            if isinstance(here, Tensor) and isinstance(there, Tensor):
                self.env[name] = self.either(name, here, there)
            elif isinstance(here, Dict) and isinstance(there, Dict):
                self.env[name] = self.one_of(name, dict(here.items), dict(there.items))
            elif isinstance(there, (Tensor, type(None))) and isinstance(here, (Tensor, type(None))):
                test = normal(stmt.test)[0]
                self.env[name] = self.settled(name, optional(here, there, name, test) or Unknown(name, test=test))
            elif (
                isinstance(there, Tensor)
                and isinstance(here, Unknown)
                and normal(stmt.test) == (f"{name} is None", True)
            ):
                self.forget({name})  # a tensor of a cache, or a new one: its element type is that of the new one
                self.env[name] = Tensor(name, None, there.dtype)
            else:
                self.forget({name})

    def one_of(self, name: str, here: dict[str, HostValue], there: dict[str, HostValue]) -> HostValue:
        """A dictionary that is one of two: which values it has is known where both have the same keys."""
        if here.keys() != there.keys():
            return Unknown(name)
        self.changed(name)

        def either(text: str, one: HostValue, other: HostValue) -> HostValue:
            both = isinstance(one, Int) and isinstance(other, Int)
            return one if one == other else Int(self.name(text)) if both else Unknown(text)

        return Dict(tuple((key, either(f"{name}[{key!r}]", one, there[key])) for key, one in here.items()))

    def either(self, name: str, here: Tensor, there: Tensor) -> Tensor:
        """A tensor that is one of two, with what both have."""
        if here.described != there.described:
            return replace(here, described="sometimes" if here.of == there.of else "always")
        dtype = here.dtype if there.dtype in (here.dtype, None) else there.dtype if here.dtype is None else None
        fresh, test = here.fresh and there.fresh, here.test or there.test
        if here.shape == there.shape:
            return Tensor(name, here.shape, dtype, fresh, test=test)
        self.changed(name)
        ranks = {len(tensor.shape) for tensor in (here, there) if tensor.shape is not None}
        rank = ranks.pop() if len(ranks) == 1 else None
        certain = here.shape is not None and there.shape is not None
        found = self.tensor(name, rank, dtype) if certain else self.tensor(name, None, dtype, rank)
        return replace(found, fresh=fresh, test=test)

    def forget(self, names: Collection[str]) -> None:
        """Names whose value is not known any more; integers get a new name."""
        for name in names:
            self.changed(name)
            self.env[name] = Unknown(name)

    def assign(self, target: ast.expr, value: HostValue, node: ast.expr) -> None:
        """``target = value``."""
        if isinstance(target, ast.Name):
            self.env[target.id] = self.settled(target.id, self.named(target.id, value, node))
        elif isinstance(target, ast.Attribute) and target.attr == "data":
            self.turned()
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            if isinstance(self.env.get(target.value.id), Dict):
                self.forget({target.value.id})
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.assign_each(target.elts, value, node)

    def named(self, name: str, value: HostValue, node: ast.expr) -> HostValue:
        """The value that a name gets, in terms of that name."""
        known = isinstance(value, Int) and name in self.texts.values()
        before = self.name(name).names if known else frozenset()
        if known:
            self.env.setdefault(name, value)  # a name of the module, too
        self.changed(name)
        self.parts.discard(name)
        if isinstance(value, Int) and before & value.value.names:  # `n = n // 2`: the old one has no text any more
            return Int(self.name(name))
        if isinstance(value, Int) and value.value.constant is not None:
            variable = self.name(name)
            self.numbers[str(variable)] = value.value.constant
            return Int(variable)
        if isinstance(value, Unknown) and dtype_of(value) is None:
            return Unknown(name, value.number or is_float(node), value.test)
        return self.named_tensor(name, value, node) if isinstance(value, Tensor) else value

    def named_tensor(self, name: str, value: Tensor, node: ast.expr) -> Tensor:
        """A tensor that a name holds from now on."""
        of = value.of if value.described else node.id if isinstance(node, ast.Name) else ""
        kin = type_of(node, self.env)
        if value.shape is None:
            found = self.tensor(name, self.ranks.sure.get(name), value.dtype, self.ranks.guessed.get(name))
            return replace(found, test=value.test, of=of, described=value.described, kin=kin)
        shape = self.shown_by(name, value.shape)
        guessed = value.guessed
        return Tensor(
            name, shape, value.dtype, value.fresh, guessed, value.test, False, of, value.described, value.turned, kin
        )

    def assign_each(self, targets: list[ast.expr], value: HostValue, node: ast.expr) -> None:
        """``a, b = value``."""
        star = next((n for n, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if star is not None and isinstance(value, tuple) and len(value) >= len(targets) - 1:
            end = len(value) - (len(targets) - 1 - star)
            value = (*value[:star], value[star:end], *value[end:])
        elif isinstance(value, Int | Unknown) and isinstance(node, ast.Attribute) and node.attr == "shape":
            value = self.unpacked(node.value, len(targets)) if star is None else value
        values = value if isinstance(value, tuple) and len(value) == len(targets) else None
        keep = self.parts.add if is_part(node) else self.parts.discard
        for number, target in enumerate(targets):
            item = target.value if isinstance(target, ast.Starred) else target
            if not isinstance(item, ast.Name):
                continue
            part = values[number] if values is not None else Unknown(item.id)
            before = self.env.get(item.id)
            if isinstance(before, Int) and isinstance(part, Int) and before.value != part.value:
                self.alike.append((before.value, part.value))
            self.changed(item.id)
            keep(item.id)
            if isinstance(part, Int) and part.value.atom is not None:
                self.preferred.setdefault(str(part.value), item.id)
            if isinstance(part, Unknown):
                part = Unknown(item.id, part.number)
            elif isinstance(part, Tensor) and part.text.startswith(f"{ast.unparse(node)}["):
                part = self.settled(item.id, self.same(part, item.id))
            elif isinstance(part, Tensor):
                part = Tensor(item.id, part.shape, part.dtype, part.fresh)
            self.env[item.id] = part

    def settled(self, name: str, value: HostValue) -> HostValue:
        """A value that may be None, as it is assumed to be."""
        none = self.assumed.get(f"{name} is None")
        if none is None or not isinstance(value, (Tensor, Unknown)):
            return value
        return None if none else replace(value, test="")

    def unpacked(self, node: ast.expr, count: int) -> HostValue:
        """``M, N = x.shape`` of a tensor of unknown rank: now it is known."""
        if not isinstance(node, ast.Name):
            return Unknown(ast.unparse(node))
        old = self.env.get(node.id)
        tensor = self.tensor(node.id, count, old.dtype if isinstance(old, Tensor) else None)
        self.env[node.id] = tensor
        assert tensor.shape is not None
        return tuple(Int(extent) for extent in tensor.shape)


@dataclass(frozen=True)
class Alike:
    """Tensors of one element type, and the types that it may be; no ``kinds`` where the condition names none."""

    tensors: tuple[ast.expr, ...]
    kinds: tuple[str, ...]


def alike(test: ast.expr, holds: bool) -> Iterator[Alike]:
    """What a condition of the host says of element types: an assertion that holds, a reason to raise that does not."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from alike(inner, not holds)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == holds:
            for value in values:
                yield from alike(value, holds)
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[row]):
            if isinstance(op, ast.In) == holds and isinstance(row, (ast.Tuple, ast.List, ast.Set)):
                yield from _of([left], row.elts)
        case ast.Compare(left=left, ops=ops, comparators=others):
            same = all(isinstance(op, (ast.Eq, ast.Is)) for op in ops)
            if same if holds else len(ops) == 1 and isinstance(ops[0], (ast.NotEq, ast.IsNot)):
                sides = [left, *others]
                yield from _of(sides, [side for side in sides if ast.unparse(side) in DTYPES])


def _of(sides: list[ast.expr], kinds: list[ast.expr]) -> Iterator[Alike]:
    tensors = tuple(side.value for side in sides if isinstance(side, ast.Attribute) and side.attr == "dtype")
    texts = [ast.unparse(kind) for kind in kinds]
    if tensors and all(text in DTYPES for text in texts):
        yield Alike(tensors, tuple(dict.fromkeys(texts)))
