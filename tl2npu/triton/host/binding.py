"""A launch as a specification of the kernel, in the names of the kernel's own parameters."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tl2npu.dialects.triton.ascend import LAUNCH_OPTIONS
from tl2npu.dialects.triton.operators import DTYPES
from tl2npu.kernel.symbolic import Atom, Div, Opaque, Sym, const, product, var
from tl2npu.tile.expr import Index
from tl2npu.tile.expr import Opaque as Text
from tl2npu.triton.host.decorators import Tuning
from tl2npu.triton.host.expressions import LaunchSite
from tl2npu.triton.host.kin import type_of
from tl2npu.triton.host.options import OPTIONS, item, may_only_have_options
from tl2npu.triton.host.torch_names import annotated, assigned
from tl2npu.triton.host.values import Dict, HostValue, Int, Lambda, Meta, Tensor, Unknown
from tl2npu.triton.host.variants import LIMIT, conditions, normal, stable, strings
from tl2npu.triton.read import spec as specs
from tl2npu.triton.read.ranges import cdiv
from tl2npu.triton.read.values import DType, Function, Pointer, Tile, Value
from tl2npu.triton.refused import Refused, Undecided

_SIZE = re.compile(r"\.(shape\[|size\(|stride\(|numel\(|nelement\()|\b(len|next_power_of_2)\(")
"""What gives a size in host code."""


_NONE = ast.Constant(None)


@dataclass
class Binding:
    """A launch bound to its kernel.

    ``arguments``: the text of what the launch passes for each parameter; ``names``: host name -> the name that the
    kernel has for it; ``absent``: what is taken of parameters that no call of the file passes; ``tests``: parameters,
    with conditions of the host code that would decide what the kernel gets; ``options``: keywords that are neither
    parameters nor options that are known: by Triton's own check, they are options of another compiler.
    """

    site: LaunchSite
    spec: specs.Spec
    arguments: dict[str, str]
    tensors: dict[str, Tensor]
    names: dict[str, str]
    absent: frozenset[str]
    tests: tuple[tuple[str, str], ...]
    options: tuple[str, ...] = ()

    @property
    def loose(self) -> frozenset[str]:
        """Names of tensors that are known not to be contiguous, or that may have any layout, as gradients."""
        function = self.site.function
        if function is None:
            return self.site.parts
        known = {name for line, name in self.site.scope.evidence.gradients if line == function.lineno}
        return self.site.parts | (known - assigned(function))


def bind(
    site: LaunchSite, kernel: ast.FunctionDef, source: specs.Source, tuning: Tuning, flat: frozenset[str] = frozenset()
) -> Binding:
    """The specification that a launch gives; tensors that are ``flat`` have one axis. Raises ``Refused`` for launches
    that cannot be followed."""
    return _Binder(site, kernel, source, tuning, flat).bound()


class _Arguments(ast.NodeTransformer):
    """The body of a heuristic with the launch's arguments in the place of ``args["name"]``."""

    def __init__(self, heuristic: ast.Lambda, found: Mapping[str, ast.expr], tuning: Tuning) -> None:
        self.heuristic, self.found, self.tuning = heuristic, found, tuning
        self.param = heuristic.args.args[0].arg

    def body(self) -> ast.expr:
        copy = ast.parse(ast.unparse(self.heuristic.body), mode="eval").body
        found: ast.expr = self.visit(copy)
        return found

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == self.param and isinstance(node.slice, ast.Constant):
            name = str(node.slice.value)
            if name in self.found:
                return self.found[name]
            if name in self.tuning.values:
                return ast.Constant(self.tuning.values[name])
        return node


_OTHER = "\0"
"""A string that no kernel asks for."""


class _Binder:
    def __init__(
        self, site: LaunchSite, kernel: ast.FunctionDef, source: specs.Source, tuning: Tuning, flat: frozenset[str]
    ) -> None:
        self.site, self.kernel, self.source, self.tuning, self.flat = site, kernel, source, tuning, flat
        args = kernel.args
        self.params = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        defaults = zip(reversed([a.arg for a in args.args]), reversed(args.defaults), strict=False)
        self.defaults: Mapping[str, ast.expr] = dict(defaults)
        self.rename: dict[str, str] = {}
        self.numbers: dict[str, Value] = {}
        self.kin: dict[str, str] = {}
        self.options: list[str] = []

    def refuse(self, code: str, message: str) -> Refused:
        return Refused(code, self.site.call.lineno, message)

    def bound(self) -> Binding:
        nodes = self.nodes()
        with self.site.there() as host:
            found = {name: self.string(name, host.eval(node), node) for name, node in nodes.items()}
            self.choose_names(found, nodes)
            values: dict[str, Value] = {}
            tensors: dict[str, specs.Tensor] = {}
            assumed: list[str] = []
            doubtful: set[str] = set()
            for name in self.params:
                if name in self.tuning.values and name not in found:
                    values[name] = self.tuned(name)
                elif name not in found:
                    raise self.refuse("TL511", f"nothing is passed for `{name}` of `{self.kernel.name}`")
                else:
                    values[name] = self.value(name, found[name], nodes[name], tensors, assumed, doubtful)
            grid = tuple(self.by_block(extent, values) for extent in self.grid(found, values))
            texts = {name: host.spelled(node) for name, node in nodes.items()}
        sizes = {self.rename.get(name, name) for name in host.texts} | {
            name for name, value in values.items() if isinstance(value, Tile) and isinstance(value.expr, Index)
        }
        spec = specs.Spec(self.kernel, self.source, values, tensors, grid, frozenset(sizes), self.numbers)
        spec.doubtful, spec.assumed, spec.kin, spec.flat = doubtful, assumed, self.kin, self.flat
        spec.alike = [(self.here(one), self.here(other)) for one, other in host.alike]
        spec.calls = tuple(self.calls())
        spec.sure = frozenset(self.rename.get(name, name) for name, text in host.texts.items() if _SIZE.search(text))
        texts |= {name: v.of for name, v in found.items() if isinstance(v, Tensor) and v.described == "sometimes"}
        passed = {name: value for name, value in found.items() if isinstance(value, Tensor)}
        absent = {
            node.id
            for name, passed_node in nodes.items()
            for node in ast.walk(passed_node)
            if isinstance(node, ast.Name) and node.id in host.absent
        }
        absent = {text for name in absent | (host.consulted & host.absent) if (text := self.left_out(name))}
        tests = tuple(dict.fromkeys(self.tests(found, nodes)))
        return Binding(self.site, spec, texts, passed, self.rename, frozenset(absent), tests, tuple(self.options))

    def left_out(self, name: str) -> str | None:
        """What is taken of a parameter that no call of the file passes: its default, None or a text."""
        value = self.site.env.get(name, 0)
        return f"{name} is None" if value is None else f"{name} == {value!r}" if isinstance(value, str) else None

    def tests(self, found: Mapping[str, HostValue], nodes: Mapping[str, ast.expr]) -> Iterator[tuple[str, str]]:
        """Parameters with conditions that would decide what is passed for them."""
        used = conditions(self.kernel)
        for name in self.params:
            value = found.get(name)
            if isinstance(value, Unknown) and value.test:
                yield name, value.test
            elif isinstance(value, Unknown) and not value.number and name in used:
                yield name, normal(nodes[name])[0]
            elif isinstance(value, Unknown) and not value.number:
                asked = (f"{ast.unparse(nodes[name])} == {text!r}" for text in strings(self.kernel, name))
                yield from ((name, test) for test in asked if test not in self.site.scope.assumed)

    def string(self, name: str, value: HostValue, node: ast.expr) -> HostValue:
        """What a parameter that the kernel compares with strings is, by the comparisons that are assumed to hold."""
        texts = strings(self.kernel, name) if isinstance(value, Unknown) and not value.number else []
        holds = [self.site.scope.assumed.get(f"{ast.unparse(node)} == {text!r}") for text in texts]
        if True in holds:
            return texts[holds.index(True)]
        return _OTHER if holds and None not in holds else value

    def calls(self) -> Iterator[dict[str, int]]:
        """The sizes in each call of the launching function that the file shows."""
        host, function = self.site.scope, self.site.function
        for known in host.evidence.calls.get(function.lineno, {}).values() if function is not None else ():
            if any(known.none(test) not in (None, holds) for test, holds in host.assumed.items()):
                continue
            passed = {name: text for (text, versions), name in host.names.items() if not any(versions)}
            shown = {name: known.numbers[text] for name, text in passed.items() if text in known.numbers}
            yield {self.rename.get(name, name): number for name, number in shown.items()}

    def nodes(self) -> dict[str, ast.expr]:
        """The argument that is passed for each parameter."""
        call = self.site.call
        if any(isinstance(arg, ast.Starred) for arg in call.args) or any(word.arg is None for word in call.keywords):
            return self.spread(call)
        if len(call.args) > len(self.params):
            raise self.refuse("TL511", "the launch passes more arguments than the kernel takes")
        found = dict(zip(self.params, call.args, strict=False))
        for word in call.keywords:
            assert word.arg is not None
            if word.arg in self.params:
                found[word.arg] = word.value
            elif word.arg not in OPTIONS | LAUNCH_OPTIONS and word.arg not in ("grid", "warmup", "stream"):
                self.options.append(word.arg)
        for name, node in self.defaults.items():
            if name not in found:
                found[name] = self.of_module(node, ast.walk(node))
        for name, heuristic in self.tuning.heuristics.items():
            body = _Arguments(heuristic, found, self.tuning).body()
            own = heuristic.args.args[0].arg
            if any(isinstance(item, ast.Name) and item.id == own for item in ast.walk(body)):
                raise self.refuse("TL514", f"the heuristic of `{name}` asks for more than single arguments")
            found[name] = self.of_module(body, ast.walk(heuristic.body))
        return found

    def of_module(self, node: ast.expr, parts: Iterable[ast.AST]) -> ast.expr:
        """An expression beside the kernel, whose names are those of the module, at the launch."""
        function = self.site.function
        if function is not None:
            args = function.args
            own = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)} | assigned(function)
            taken = {item.id for item in parts if isinstance(item, ast.Name)} & own
            if taken:
                name = min(taken)
                raise self.refuse(
                    "TL514", f"`{name}` in `{ast.unparse(node)}` is another one where the kernel is launched"
                )
        return node

    def spread(self, call: ast.Call) -> dict[str, ast.expr]:
        """``*x.stride()`` among the arguments: one for each axis; ``**config`` of a dictionary: one for each key."""
        args: list[ast.expr] = []
        for arg in call.args:
            if not isinstance(arg, ast.Starred):
                args.append(arg)
                continue
            with self.site.there() as host:
                decided = isinstance(arg.value, ast.IfExp) and host.decided(arg.value.test) is None
                arms = (
                    [arg.value.body, arg.value.orelse] if isinstance(arg.value, ast.IfExp) and decided else [arg.value]
                )
                counts = {len(value) if isinstance(value := host.eval(arm), tuple) else None for arm in arms}
            count = counts.pop()
            if count is None or counts:
                raise self.refuse("TL511", f"it is not known how many arguments `{ast.unparse(arg)}` is")
            for number in range(count):
                texts = [f"{ast.unparse(arm)}[{number}]" for arm in arms]
                text = f"{texts[0]} if {ast.unparse(arg.value.test)} else {texts[1]}" if decided else texts[0]  # type: ignore[attr-defined]
                args.append(ast.parse(text, mode="eval").body)
        words = [word for word in call.keywords if word.arg is not None]
        unseen: list[ast.expr] = []
        for word in call.keywords:
            if word.arg is not None:
                continue
            with self.site.there() as host:
                given = host.eval(word.value)
            if isinstance(given, Dict):
                words += [item(word.value, str(key)) for key, _ in given.items]
            elif not may_only_have_options(word.value, self.site.function, self.params):
                unseen.append(word.value)
        passed = {*self.params[: len(args)], *(word.arg for word in words)}
        passed |= self.tuning.values.keys() | self.tuning.heuristics.keys()
        missing = [name for name in self.params if name not in passed] if unseen else []
        plain = len(unseen) == 1 and not any(isinstance(node, ast.Call) for node in ast.walk(unseen[0]))
        plain &= all(isinstance(self.defaults.get(name, _NONE), ast.Constant) for name in missing)
        if missing and not plain:
            raise self.refuse("TL511", "the launch unpacks keyword arguments")
        words += [item(unseen[0], name, self.defaults.get(name)) for name in missing]
        changed = ast.Call(call.func, args, words)
        ast.copy_location(changed, call)
        self.site = replace(self.site, call=changed)
        return self.nodes()

    def choose_names(self, found: Mapping[str, HostValue], nodes: Mapping[str, ast.expr]) -> None:
        """Integers of the host go by the parameter that they are passed for."""
        host = self.site.scope
        for name in sorted(found, key=lambda name: ".stride(" in ast.unparse(nodes[name])):
            value = found[name]
            symbol: Sym | None = None
            if isinstance(value, Int):
                symbol = value.value
            elif isinstance(value, Unknown) and not value.number and not self.dtype(value):
                symbol = host.name(value.text)
            if symbol is not None and symbol.atom is not None and str(symbol) in host.texts:
                self.rename.setdefault(str(symbol), name)
        taken = set(self.params)
        given = Counter(host.preferred.values())  # a name that is unpacked twice stands for two sizes
        for old, new in host.preferred.items():
            if old not in self.rename and new not in taken and given[new] == 1:
                self.rename[old] = new
        used = set(self.rename.values())
        for old in host.texts:
            if old not in self.rename and old in taken | used:
                self.rename[old] = f"host_{old}"
        for old, number in host.numbers.items():
            self.numbers[self.rename.get(old, old)] = number

    def here(self, value: Sym) -> Sym:
        return value.substitute({old: var(new) for old, new in self.rename.items()})

    def dtype(self, value: Unknown) -> str | None:
        """An element type that is passed as an argument."""
        prefix, _, last = value.text.rpartition(".")
        return DTYPES.get(last) if prefix in ("tl", "triton.language", "torch") else None

    def tuned(self, name: str) -> Value:
        """A parameter that autotuning or a heuristic sets."""
        value = self.tuning.values[name]
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        self.numbers[name] = value
        return Tile((), Index(var(name)))

    def value(
        self,
        name: str,
        value: HostValue,
        node: ast.expr,
        tensors: dict[str, specs.Tensor],
        assumed: list[str],
        doubtful: set[str],
    ) -> Value:
        """What the kernel gets for a parameter."""
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "reinterpret":
            raise self.refuse("TL512", f"what `{ast.unparse(node)}` gives is not a torch tensor")
        if name in self.flat and isinstance(value, Unknown):
            value = Tensor(value.text, None, None)
        strided = any(f"{ast.unparse(node)}.stride(" in ast.unparse(arg) for arg in self.site.call.args)
        if isinstance(node, ast.Name) and node.id in self.site.parts and not strided:
            raise self.refuse("TL521", f"`{node.id}` is a part of another tensor and need not be contiguous")
        if isinstance(value, Tensor) and value.shape is None and _is_element(node, value.text):
            text = f"`{value.text}` is where a part of another tensor begins, and nothing shows where it ends"
            raise self.refuse("TL521", text)
        match value:
            case Tensor(turned=True):
                raise self.refuse("TL521", f"the axes of `{ast.unparse(node)}` are not in the order of its memory")
            case Tensor():
                return self.tensor(name, value, node, tensors, assumed)
            case Int():
                symbol = self.here(value.value)
                if self.numbers.get(str(symbol)) == 1 and self.is_one(name, 1):
                    return 1
                if symbol.constant is not None:
                    named = isinstance(node, (ast.Constant, ast.Name, ast.Subscript))
                    if not named or self.is_one(name, symbol.constant):
                        return symbol.constant
                    self.numbers[name] = symbol.constant
                    return Tile((), Index(var(name)))
                return Tile((), Index(symbol))
            case bool() | None | str():
                return value
            case float():
                self.numbers[name] = value
                return Tile((), Text(name, "float32", self.is_constant(name)))
            case Unknown():
                dtype = self.dtype(value)
                if dtype is not None:
                    return DType(dtype)
                if value.number:
                    return Tile((), Text(name, "float32", self.is_constant(name)))
                if self.is_constant(name) and value.text in self.source.functions:
                    return Function(self.source.functions[value.text])
                if not value.test:
                    doubtful.add(name)
                    self.kin[name] = value.text
                return Tile((), Index(self.here(self.site.scope.name(value.text))))
            case tuple() if all(isinstance(item, Int) for item in value):
                symbols = (self.here(item.value) for item in value if isinstance(item, Int))
                return tuple(Tile((), Index(s)) if s.constant is None else s.constant for s in symbols)
        raise self.refuse("TL511", f"what is passed for `{name}`, `{ast.unparse(node)}`, is not understood")

    def is_constant(self, name: str) -> bool:
        """True for parameters that are ``tl.constexpr``."""
        args = (*self.kernel.args.posonlyargs, *self.kernel.args.args, *self.kernel.args.kwonlyargs)
        return any(arg.arg == name and annotated(arg, "constexpr") for arg in args)

    def is_one(self, name: str, number: int) -> bool:
        """True for a 1 that is passed for a number of the kernel: Triton compiles it as a constant, too."""
        args = (*self.kernel.args.posonlyargs, *self.kernel.args.args, *self.kernel.args.kwonlyargs)
        return number == 1 and all(arg.annotation is None for arg in args if arg.arg == name)

    def tensor(
        self, name: str, value: Tensor, node: ast.expr, tensors: dict[str, specs.Tensor], assumed: list[str]
    ) -> Value:
        """A tensor argument: row-major, or refused."""
        self.no_object(node)
        if value.test:
            message = f"`{ast.unparse(node)}` may be a tensor or None"
            none = f"{ast.unparse(node)} is None"  # asks for less than what decided it
            asked = value.test if stable(value.test, self.site.function) else none
            raise Undecided("TL511", self.site.call.lineno, message, asked)
        if value.described == "always" or (value.described and not stable(value.of, self.site.function)):
            raise self.refuse("TL538", f"`{value.text}` is a tensor descriptor that the host makes")
        several = "" if value.dtype is None or "+" not in value.dtype else value.dtype.replace("+", ", ")
        listed = self.site.scope.listed.get(value.dtype or "", "")
        test = self.types() if several or (value.dtype is None and self.site.alone) else None
        if listed and test is None:
            if self.site.alone and len(self.site.scope.assumed) < LIMIT and stable(listed, self.site.function):
                raise Undecided("TL513", self.site.call.lineno, f"the host allows {several} for `{value.text}`", listed)
            assumed.append(name)
            value = replace(value, dtype=several.partition(",")[0])
        elif several or (value.dtype is None and self.site.alone):
            message = f"`{value.text}` is passed with the element types {several}"
            if test is not None and (several or stable(test, self.site.function)):
                raise Undecided("TL513", self.site.call.lineno, message, test)
            if several:
                raise self.refuse("TL513", message)
        if value.dtype is None:
            assumed.append(name)
            self.kin[name] = type_of(node, self.site.scope.env) or value.text
        shape = None if value.shape is None else tuple(self.here(extent) for extent in value.shape)
        if name in self.flat:
            every = ast.unparse(ast.Call(ast.Attribute(node, "numel"), [], []))
            count = self.site.scope.name(every) if shape is None else product(shape)
            shape = (self.here(count),)
        tensors[name] = specs.Tensor(shape, value.dtype or "float32")
        return Pointer(name, const(0), ())

    def types(self) -> str | None:
        """The condition on an element type that tells calls of the launching function apart; None where none does."""
        function, host = self.site.function, self.site.scope
        if function is None:
            return None
        calls = host.evidence.agreeing(function.lineno, host.assumed)
        args = function.args
        params = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        for text in (text for param in params for text in (f"{param}.dtype", param)):
            types = list(dict.fromkeys(call.types[text] for call in calls if text in call.types))
            if len(types) > 1:
                return f"{text} == torch.{types[0]}"
        return None

    def no_object(self, node: ast.expr) -> None:
        """Refuse a parameter of the host function for which a call in the file passes an object of another class."""
        function, evidence = self.site.function, self.site.scope.evidence
        if function is None or not isinstance(node, ast.Name) or node.id in assigned(function):
            return
        if any(node.id in call.objects for call in evidence.calls.get(function.lineno, {}).values()):
            raise self.refuse("TL512", f"a call in the file passes for `{node.id}` what is not a torch tensor")

    def grid(self, found: Mapping[str, HostValue], values: Mapping[str, Value]) -> tuple[Sym, ...]:
        """The extents of the grid, for what the kernel gets for each parameter."""
        func = self.site.call.func
        assert isinstance(func, ast.Subscript)
        host = self.site.scope
        value = host.eval(func.slice)
        if isinstance(value, Lambda):
            kept = dict(host.env)
            host.meta = lambda text: self.meta(text, found, values)
            host.env.update(dict.fromkeys(value.params, Meta()))
            value = host.eval(value.node)  # type: ignore[arg-type]
            host.env, host.meta = kept, None
        parts = value if isinstance(value, tuple) else (value,)
        extents: list[Sym] = []
        for part in parts:
            if isinstance(part, Unknown) and not part.number and isinstance(value, tuple):
                part = Int(host.name(part.text))
            if not isinstance(part, Int):
                raise self.refuse("TL511", f"the grid `{ast.unparse(func.slice)}` is not understood")
            extents.append(self.here(part.value))
        while len(extents) > 1 and extents[-1].constant == 1:
            extents.pop()
        return tuple(extents)

    def by_block(self, extent: Sym, values: Mapping[str, Value]) -> Sym:
        """The extent with the name of the block size in the place of its number, where one argument has that number."""
        total = const(0)
        for mono, coef in extent.terms:
            product = const(coef)
            for atom in mono:
                value = Sym.of({(atom,): 1})
                num, den = _divided(atom)
                names = [
                    name
                    for name, number in self.numbers.items()
                    if number == den and isinstance(values.get(name), Tile)
                ]
                if num is not None and len(names) == 1:
                    value = cdiv(num, var(names[0])) if isinstance(atom, Opaque) else num // var(names[0])
                product = product * value
            total = total + product
        return total

    def meta(self, name: str, found: Mapping[str, HostValue], values: Mapping[str, Value]) -> HostValue:
        """A constexpr argument, as a grid function asks for it."""
        name = name.strip("'\"")
        given = values.get(name)
        if isinstance(given, int):
            return Int(const(given))
        value = found.get(name)
        if isinstance(value, Int) and value.value.constant is None:
            return value
        if isinstance(value, Unknown):
            return Int(self.site.scope.name(value.text))
        return Int(var(name)) if name in self.params else Unknown(name)


def _divided(atom: Atom) -> tuple[Sym | None, int | None]:
    """What a division divides, and by which number."""
    if isinstance(atom, Opaque) and atom.head == "cdiv":
        return atom.args[0], atom.args[1].constant
    return (atom.num, atom.den.constant) if isinstance(atom, Div) else (None, None)


def _is_element(node: ast.expr, text: str) -> bool:
    """True for ``x[i]`` that is known by no other name."""
    index = node.slice if isinstance(node, ast.Subscript) and ast.unparse(node) == text else None
    return index is not None and not any(isinstance(part, ast.Slice) for part in ast.walk(index))
