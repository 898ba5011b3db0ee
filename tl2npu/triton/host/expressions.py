"""Expressions of host code as symbolic values, and the launches among them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tl2npu.kernel.symbolic import Sym, const
from tl2npu.triton.host.evidence import Call, Evidence
from tl2npu.triton.host.methods import applied, bound
from tl2npu.triton.host.tensors import HostTensors
from tl2npu.triton.host.torch_names import (
    DTYPES,
    LIKE,
    MAKERS,
    SAME,
    SAME_MORE,
    assigned,
    dtype_of,
    dtype_word,
    is_float,
)
from tl2npu.triton.host.values import Dict, HostValue, Instance, Int, Lambda, Meta, Tensor, Unknown, one_of, optional
from tl2npu.triton.host.variants import normal
from tl2npu.triton.read.ranges import cdiv, largest, smallest

Words = Mapping[str | None, HostValue]
"""The values of arguments that are given by name."""

_READING = ("copy", "get", "items", "keys", "values")
_TURNS = 16
"""How many values of a generator are followed."""


@dataclass(frozen=True)
class LaunchSite:
    """``kernel[grid](...)``: the call, its statement, the names and values there, and the grid as host code has it.

    ``parts``: parts of tensors, not contiguous; ``versions``: how often names were set; ``given``: which are None.
    """

    kernel: str
    call: ast.Call
    stmt: ast.stmt
    env: Mapping[str, HostValue]
    function: ast.FunctionDef | None
    scope: HostExpressions
    parts: frozenset[str] = frozenset()
    versions: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, bool] = field(default_factory=dict)

    @contextmanager
    def there(self) -> Iterator[HostExpressions]:
        """What evaluates host code as it is at the launch, not behind it."""
        host = self.scope
        kept = host.env, host.versions, host.assumed
        host.env, host.versions, host.assumed = dict(self.env), dict(self.versions), {**host.assumed, **self.given}
        try:
            yield host
        finally:
            host.env, host.versions, host.assumed = kept

    def where(self, given: Mapping[str, bool]) -> LaunchSite | None:
        """The launch where names are None, or are not, as ``given`` says of ``x is None``; None where it cannot say."""
        env = dict(self.env)
        for test, holds in given.items():
            name, _, rest = test.partition(" is ")
            value = env.get(name)
            if value is None and name in self.scope.absent:
                value = Tensor(name, None, None, test=test)
            unclear = (isinstance(value, Tensor) and value.test) or (isinstance(value, Unknown) and value.text == name)
            if rest != "None" or not unclear:
                return None
            env[name] = None if holds else replace(value, test="")  # type: ignore[type-var]
        return replace(self, env=env, given=given)

    @property
    def place(self) -> tuple[int, int, str]:
        """Where in the text it is, and of which kernel: an ``if`` with launches of two may stand for one launch."""
        return self.call.lineno, self.call.col_offset, self.kernel

    @property
    def alone(self) -> bool:
        """True for a launch that is a statement: nothing reads what it gives."""
        stmt, function = self.stmt, self.function
        if isinstance(stmt, ast.Assign) and stmt.value is self.call and function is not None:
            names = {target.id for target in stmt.targets if isinstance(target, ast.Name)}
            read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            return len(names) == len(stmt.targets) and not names & read
        return isinstance(stmt, ast.Expr) and stmt.value is self.call


class HostExpressions(HostTensors):
    """Evaluates expressions of one function; what it does not understand becomes ``Unknown``."""

    def __init__(
        self,
        function: ast.FunctionDef | None,
        kernels: frozenset[str],
        functions: Mapping[str, ast.FunctionDef],
        evidence: Evidence,
        found: Callable[[LaunchSite], None],
    ) -> None:
        super().__init__(function, kernels, functions, evidence)
        self.found = found

    @property
    def owner(self) -> str:
        """The class whose method the function is; empty without."""
        return self.class_of(self.function)

    def class_of(self, function: ast.FunctionDef | None) -> str:
        """The class whose method a function is; empty without."""
        names = (name for name, node in self.functions.items() if node is function)
        return next((name.rpartition(".")[0] for name in names if "." in name), "")

    def same(self, value: HostValue, name: str) -> HostValue:
        """A value of another function by its name here: what is no number there is not known."""
        if isinstance(value, Int):
            return value if value.value.constant is not None else Int(self.name(name))
        if not isinstance(value, Tensor):
            return value if isinstance(value, (float, str)) else Unknown(name)
        if value.shape is None:
            return Tensor(name, None, value.dtype)
        found = self.tensor(name, len(value.shape), value.dtype)
        pairs = zip(value.shape, found.shape or (), strict=True)
        shape = tuple(there if there.constant is not None else here for there, here in pairs)
        return replace(found, shape=shape, test=f"{name} is None" if value.test else "")

    # expressions --------------------------------------------------------------------------------------------------

    def eval(self, node: ast.expr) -> HostValue:
        """The value of an expression."""
        decided = self.decided(node)
        if decided is not None:
            return decided
        method = getattr(self, f"on_{type(node).__name__}", None)
        if method is not None:
            found: HostValue = method(node)
            return found
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.eval(child)
        return Unknown(ast.unparse(node), is_float(node))

    def decided(self, node: ast.expr) -> bool | None:
        """Whether a condition is assumed to hold."""
        if not self.assumed:
            return None
        text, holds = normal(node)
        if text not in self.assumed and isinstance(node, ast.BoolOp):
            decisive, parts = isinstance(node.op, ast.Or), [self.decided(part) for part in node.values]
            return decisive if decisive in parts else None if None in parts else not decisive
        return self.assumed[text] == holds if text in self.assumed else None

    def spelled(self, node: ast.expr) -> str:
        """The text of an expression, without branches that assumptions decide against."""
        while isinstance(node, ast.IfExp) and (decided := self.decided(node.test)) is not None:
            node = node.body if decided else node.orelse
        return ast.unparse(node)

    def on_Constant(self, node: ast.Constant) -> HostValue:
        value = node.value
        if isinstance(value, bool) or value is None or isinstance(value, (float, str)):
            return value
        return Int(const(value)) if isinstance(value, int) else Unknown(ast.unparse(node))

    def on_Name(self, node: ast.Name) -> HostValue:
        return self.env.get(node.id, Unknown(node.id))

    def on_Tuple(self, node: ast.Tuple | ast.List) -> HostValue:
        found: list[HostValue] = []
        for item in node.elts:
            value = self.eval(item.value if isinstance(item, ast.Starred) else item)
            if not isinstance(item, ast.Starred):
                found.append(value)
            elif isinstance(value, tuple):
                found += value
            else:
                return Unknown(ast.unparse(node))
        return tuple(found)

    on_List = on_Tuple

    def on_Dict(self, node: ast.Dict) -> HostValue:
        values = [self.eval(value) for value in node.values]
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        if not all(isinstance(key, str) for key in keys):
            return Unknown(ast.unparse(node))
        return Dict(tuple(zip(map(str, keys), values, strict=True)))

    def on_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp) -> HostValue:
        """``(torch.randn(n) for _ in range(3))``: as many values; anything else is not known."""
        (turns, *others), text = node.generators, ast.unparse(node)
        call = turns.iter
        if others or turns.ifs or not isinstance(turns.target, ast.Name) or not isinstance(call, ast.Call):
            return Unknown(text)
        if ast.unparse(call.func) != "range" or len(call.args) != 1:
            return Unknown(text)
        count = self.number(call.args[0])
        used = any(isinstance(item, ast.Name) and item.id == turns.target.id for item in ast.walk(node.elt))
        if not isinstance(count, int) or not 0 < count <= _TURNS or used:
            return Unknown(text)
        return tuple(self.eval(node.elt) for _ in range(count))

    on_ListComp = on_GeneratorExp

    def on_Lambda(self, node: ast.Lambda) -> HostValue:
        return Lambda(tuple(arg.arg for arg in node.args.args), node.body)

    def on_Attribute(self, node: ast.Attribute) -> HostValue:
        text = ast.unparse(node)
        if text in DTYPES:
            return Unknown(text)
        owner = self.eval(node.value)
        if isinstance(owner, Tensor):
            if node.attr == "shape" and owner.shape is not None:
                return tuple(Int(extent) for extent in owner.shape)
            if node.attr == "dtype":
                return Unknown(f"torch.{owner.dtype}" if owner.dtype else text)
            if node.attr == "T" and owner.shape is not None:
                return Tensor(text, None, owner.dtype)
            if node.attr == "data":
                return owner
        if node.attr == "saved_tensors":
            saved = self.evidence.saved.get(self.owner, ())
            return tuple(self.same(value, f"{text}[{place}]") for place, value in enumerate(saved)) or Unknown(text)
        return Unknown(text)

    def on_Subscript(self, node: ast.Subscript) -> HostValue:
        text = ast.unparse(node)
        owner = self.eval(node.value)
        place = self.eval(node.slice)
        if isinstance(owner, Meta):
            return self.meta(str(place)) if self.meta is not None else Unknown(text)
        if isinstance(owner, Dict):
            return dict(owner.items).get(str(place), Unknown(text))
        number = place.value.constant if isinstance(place, Int) else None
        if isinstance(owner, tuple) and number is not None and -len(owner) <= number < len(owner):
            return owner[number]
        if isinstance(owner, tuple) and isinstance(node.slice, ast.Slice):
            low, high = self.number(node.slice.lower), self.number(node.slice.upper)
            if not isinstance(low, str) and not isinstance(high, str) and node.slice.step is None:
                return owner[low:high]
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return Int(self.name(text))
        return Tensor(text, None, owner.dtype) if isinstance(owner, Tensor) else Unknown(text)

    def number(self, node: ast.expr | None) -> int | str | None:
        """A plain integer; ``?`` if it is none."""
        value = None if node is None else self.eval(node)
        if isinstance(value, Int):
            return value.value.constant if value.value.constant is not None else "?"
        return None if value is None else "?"

    def on_UnaryOp(self, node: ast.UnaryOp) -> HostValue:
        value = self.eval(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(value, Int):
            return Int(-value.value)
        if isinstance(node.op, ast.USub) and isinstance(value, float):
            return -value
        return Unknown(ast.unparse(node), is_float(node) or (isinstance(value, Unknown) and value.number))

    def on_BinOp(self, node: ast.BinOp) -> HostValue:
        one, other = self.eval(node.left), self.eval(node.right)
        left, right = self.integer(one, node.left), self.integer(other, node.right)
        text = ast.unparse(node)
        if isinstance(one, Tensor) or isinstance(other, Tensor):
            same = [item for item in (one, other) if isinstance(item, Tensor)]
            shapes = {item.shape for item in same}
            return Tensor(text, same[0].shape if len(shapes) == 1 else None, same[0].dtype)
        if left is None or right is None or isinstance(node.op, (ast.Div, ast.Pow)):
            floats = (isinstance(v, float) or (isinstance(v, Unknown) and v.number) for v in (one, other))
            return Unknown(text, is_float(node) or any(floats))
        match node.op:
            case ast.Add():
                return Int(left + right)
            case ast.Sub():
                return Int(left - right)
            case ast.Mult():
                return Int(left * right)
            case ast.FloorDiv() if not right.is_zero:
                return Int(cdiv(left - right + 1, right) if _rounds_up(left, right) else left // right)
            case ast.Mod() if not right.is_zero:
                return Int(left % right)
        return Unknown(text)

    def on_Compare(self, node: ast.Compare) -> HostValue:
        left, right = self.eval(node.left), self.eval(node.comparators[0])
        text = ast.unparse(node)
        if len(node.ops) != 1:
            return Unknown(text)
        op = node.ops[0]
        if isinstance(left, Tensor) and not isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            return Tensor(text, left.shape if isinstance(right, (Int, float)) else None, "bool")
        if isinstance(op, (ast.Is, ast.IsNot)) and right is None:
            if isinstance(left, Unknown) or (isinstance(left, Tensor) and left.test):
                return Unknown(text, test=left.test)
            if left is None and isinstance(node.left, ast.Name) and node.left.id in self.absent:
                if self.function is not None and node.left.id in assigned(self.function):
                    return Unknown(text)
                self.consulted.add(node.left.id)
            return (left is None) == isinstance(op, ast.Is)
        if (types := (dtype_of(left), dtype_of(right))) and all(types) and isinstance(op, (ast.Eq, ast.NotEq)):
            return (types[0] == types[1]) == isinstance(op, ast.Eq)
        if isinstance(left, Int) and isinstance(right, Int) and isinstance(op, (ast.Eq, ast.NotEq)):
            difference = (left.value - right.value).constant
            return Unknown(text) if difference is None else (difference == 0) == isinstance(op, ast.Eq)
        return Unknown(text)

    def on_BoolOp(self, node: ast.BoolOp) -> HostValue:
        values = [self.eval(value) for value in node.values]
        decisive = isinstance(node.op, ast.Or)
        if any(value is decisive for value in values):
            return decisive
        return not decisive if all(isinstance(value, bool) for value in values) else Unknown(ast.unparse(node))

    def on_IfExp(self, node: ast.IfExp) -> HostValue:
        test = self.eval(node.test)
        one, other = self.eval(node.body), self.eval(node.orelse)
        if isinstance(test, bool):
            return one if test else other
        text, test = ast.unparse(node), normal(node.test)[0]
        return one if one == other else optional(one, other, text, test) or Unknown(text, is_float(node), test)

    def on_Call(self, node: ast.Call) -> HostValue:
        func = node.func
        if isinstance(func, ast.Subscript) and isinstance(func.value, ast.Name) and func.value.id in self.kernels:
            assert self.stmt is not None
            there = dict(self.env), self.function, self, frozenset(self.parts), dict(self.versions)
            self.found(LaunchSite(func.value.id, node, self.stmt, *there))
            return Unknown(ast.unparse(node))
        args = self.arguments(node)
        words: Words = {word.arg: self.eval(word.value) for word in node.keywords if word.arg is not None}
        self.evident(node, args, words)
        text = ast.unparse(func)
        last = text.rpartition(".")[2]
        if last == "save_for_backward":
            self.evidence.saved[self.owner] = tuple(args)
        described = args[0] if last == "TensorDescriptor" and args else None
        if isinstance(described, Tensor):
            return replace(described, of=ast.unparse(node.args[0]) if node.args else "", described="always")
        found = self.of_torch(last, node, args, words) if text.startswith("torch.") else None
        if found is None:
            found = self.of_numbers(text, node, args)
        if found is None and isinstance(func, ast.Attribute):
            found = self.of_method(func, node, args, words)
        if found is None:
            found = self.of_file(text, node)
        is_number = last != "next_power_of_2" and is_float(node)
        return Unknown(ast.unparse(node), is_number) if found is None else found

    def of_torch(self, name: str, node: ast.Call, args: list[HostValue], words: Words) -> HostValue:
        """A tensor that a function of torch makes; None for other functions."""
        if name in LIKE and args:
            like = args[0] if isinstance(args[0], Tensor) else Tensor(ast.unparse(node.func), None, None)
            fresh = like.fresh and "memory_format" not in words
            return Tensor(ast.unparse(node), like.shape, dtype_word(words, like.dtype), fresh)
        if name in MAKERS:
            return replace(self.made(name, node, args, words), fresh="memory_format" not in words)
        if name in SAME | SAME_MORE and args and isinstance(args[0], Tensor):
            return self.method(args[0], name, node, args[1:], words)
        return None

    def of_numbers(self, text: str, node: ast.Call, args: list[HostValue]) -> HostValue:
        """A quotient that is rounded up, an extremum, a length; None for other functions."""
        if text == "len" and args and isinstance(args[0], tuple):
            return Int(const(len(args[0])))
        rounds_up = text.rpartition(".")[2] in ("cdiv", "ceil_div")
        if len(args) != 2 or not (rounds_up or text in ("min", "max")):
            return None
        one, other = self.integer(args[0], node.args[0]), self.integer(args[1], node.args[1])
        if one is None or other is None:
            return Unknown(ast.unparse(node)) if rounds_up else None
        return Int((cdiv if rounds_up else smallest if text == "min" else largest)(one, other))

    def of_method(self, func: ast.Attribute, node: ast.Call, args: list[HostValue], words: Words) -> HostValue:
        """A method of a tensor, or of what may be one; None for others."""
        owner = self.eval(func.value)
        if isinstance(owner, Dict) and isinstance(func.value, ast.Name) and func.attr not in _READING:
            self.env[func.value.id] = Unknown(func.value.id)
        if isinstance(owner, Tensor):
            return self.method(owner, func.attr, node, args, words)
        if func.attr in ("shape", "size", "numel", "stride") and isinstance(owner, Unknown):
            return Int(self.name(ast.unparse(node)))
        if func.attr in ("view", "reshape") and (isinstance(owner, Unknown) or owner is None):
            return self.viewed(Tensor(ast.unparse(func.value), None, None), func.attr, node, args)
        return None

    def of_file(self, text: str, node: ast.Call) -> HostValue:
        """What a function or a class of the file gives, as far as it is known; None for others."""
        line = self.functions[text].lineno if text in self.functions else None
        ways = list(self.evidence.results.get(line, {}).values()) if line is not None else []
        if ways and len({len(way) for way in ways}) == 1:
            texts = (f"{ast.unparse(node)}[{place}]" for place in range(len(ways[0])))
            return tuple(
                self.same(one_of(values), text) for values, text in zip(zip(*ways, strict=True), texts, strict=True)
            )
        made = self.evidence.made.get(line) if line is not None else None
        if made and not made & {"", "?"} and len(made) == 1:
            return Tensor(ast.unparse(node), None, next(iter(made)))
        is_class = any(name.startswith(f"{text}.") for name in self.functions)
        return Instance(ast.unparse(node), text) if is_class else None

    def arguments(self, node: ast.Call) -> list[HostValue]:
        """The values of the arguments by position; unpacked ones as far as they are known."""
        found: list[HostValue] = []
        for arg in node.args:
            value = self.eval(arg.value if isinstance(arg, ast.Starred) else arg)
            if not isinstance(arg, ast.Starred):
                found.append(value)
            elif isinstance(value, tuple):
                found += value
        return found

    def is_gradient(self, name: str) -> bool:
        """True for a parameter that is a gradient, of whatever shape, and that the function leaves as it is."""
        function = self.function
        if function is None or (function.lineno, name) not in self.evidence.gradients:
            return False
        return name not in assigned(function)

    def evident(self, node: ast.Call, args: list[HostValue], words: Mapping[str | None, HostValue]) -> None:
        """A call of a function of the file shows what its parameters are."""
        function = self.called(node.func)
        stars = [arg.value for arg in node.args if isinstance(arg, ast.Starred)]
        if function is None or not all(isinstance(self.eval(arg), tuple) for arg in stars):
            return
        params = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
        params = params[self.unpassed(node.func, function) :]
        if all(word.arg is not None for word in node.keywords):
            given = {**dict(zip(params, args, strict=False)), **{word: words[word] for word in words if word}}
            place = node.lineno, node.col_offset, *sorted(self.types.items())
            self.evidence.calls.setdefault(function.lineno, {})[place] = self.shown(function, given)
        nodes = dict(zip(params, () if stars else node.args, strict=False))
        nodes |= {word.arg: word.value for word in node.keywords if word.arg is not None}
        own = {name for name, passed in nodes.items() if isinstance(passed, ast.Name) and self.is_gradient(passed.id)}
        self.evidence.gradients |= {(function.lineno, name) for name in own}
        for param, value in (*zip(params, args, strict=False), *words.items()):
            if param is not None:
                self.passed((function.lineno, param), value)

    def passed(self, param: tuple[int, str], value: HostValue) -> None:
        """A parameter, by the line of its function, gets a value in a call."""
        evidence = self.evidence
        evidence.dtypes.setdefault(param, set()).add(dtype_of(value))
        if value is not None:
            evidence.passed.add(param)
        if isinstance(value, float) or (isinstance(value, Unknown) and value.number):
            evidence.floats.add(param)
        if not isinstance(value, Tensor):
            return
        if value.gradient:
            evidence.gradients.add(param)
        seen = None if value.shape is None or value.guessed else len(value.shape), value.dtype
        if (seen[0] is not None or value.dtype) and seen not in evidence.tensors.setdefault(param, []):
            evidence.tensors[param].append(seen)

    def called(self, func: ast.expr) -> ast.FunctionDef | None:
        """The function of the file that a call runs: by its name, as ``Class.apply``, or as a call of an instance."""
        owner = self.env.get(func.id) if isinstance(func, ast.Name) else None
        if isinstance(func, ast.Call):
            owner = self.eval(func)
        if isinstance(owner, Instance):
            names = [f"{owner.of}.__call__", f"{owner.of}.forward"]
        else:
            text = ast.unparse(func)
            names = [text, f"{text}.__init__"]
        return next((self.functions[name] for name in names if name in self.functions), None)

    def unpassed(self, func: ast.expr, function: ast.FunctionDef) -> int:
        """How many first parameters of a function a call by this name does not give."""
        owner, text = self.class_of(function), ast.unparse(func)
        if function.name == "forward" and text in self.functions and text.rpartition(".")[2] != "forward":
            return applied(function, owner, self.functions)  # `Class.apply`, or a name for it
        return bound(function, owner, instance=text not in self.functions)

    def shown(self, function: ast.FunctionDef, given: Mapping[str, HostValue]) -> Call:
        """What a call shows of the parameters of a function."""
        numbers: dict[str, int] = {}
        positional = [*function.args.posonlyargs, *function.args.args]
        defaults = zip(reversed(positional), reversed(function.args.defaults), strict=False)
        values = {arg.arg: self.eval(node) for arg, node in defaults if isinstance(node, ast.Constant)} | dict(given)
        for param, value in values.items():
            for text, symbol in _integers(param, value).items():
                number = symbol.substitute(self.numbers).constant
                if number is not None:
                    numbers[text] = number
        objects = frozenset(param for param, value in given.items() if isinstance(value, Instance))
        passed = frozenset(param for param, value in given.items() if value is not None)
        maybe = frozenset(param for param, value in given.items() if isinstance(value, Tensor) and value.test)
        params = frozenset(arg.arg for arg in (*positional, *function.args.kwonlyargs))
        found_types = {param: dtype_of(value) for param, value in given.items()}
        found_types |= {f"{param}.dtype": value.dtype for param, value in given.items() if isinstance(value, Tensor)}
        types = {text: dtype for text, dtype in found_types.items() if dtype is not None and "+" not in dtype}
        texts = {param: value for param, value in values.items() if isinstance(value, str)}
        return Call(passed, numbers, objects, params, maybe, types, texts)


def _integers(param: str, value: HostValue) -> dict[str, Sym]:
    """The integers that a parameter shows, by the text that asks for them: its value, or the extents of a tensor."""
    match value:
        case Int(number):
            return {param: number}
        case bool():
            return {param: const(int(value))}
        case Tensor(shape=shape) if shape is not None:
            return {f"{param}.shape[{place}]": extent for place, extent in enumerate(shape)}
    return {}


def _rounds_up(num: Sym, den: Sym) -> bool:
    """Whether ``num // den`` is written to round up, as in ``(n + block - 1) // block``."""
    terms = dict(num.terms)
    if den.constant is None:
        return any(mono in terms for mono, _ in den.terms)
    return den.constant > 1 and terms.get(()) == den.constant - 1
