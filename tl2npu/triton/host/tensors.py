"""The names and tensors of a host function: how shapes follow from what makes a tensor and from its methods."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from tl2npu.kernel.symbolic import Sym, const, product, var
from tl2npu.triton.host.evidence import Evidence
from tl2npu.triton.host.ranks import Ranks
from tl2npu.triton.host.torch_names import (
    SAME,
    SAME_MORE,
    TURNED,
    WORD,
    converted,
    dtype_of,
    dtype_word,
    element_bytes,
    literal_shape,
    same_width,
    subscripted,
)
from tl2npu.triton.host.values import HostValue, Int, Shape, Tensor, Unknown

_TELLING = frozenset(
    "numel nelement dim ndimension size stride item tolist is_contiguous data_ptr element_size".split()
)
"""Methods that tell something about a tensor."""
_LISTS = (ast.List, ast.Tuple, ast.Load, ast.UnaryOp, ast.USub)


class HostTensors:
    """The state of one function, with its names for integers, and what torch makes of tensors."""

    def __init__(
        self,
        function: ast.FunctionDef | None,
        kernels: frozenset[str],
        functions: Mapping[str, ast.FunctionDef],
        evidence: Evidence,
    ) -> None:
        self.function, self.kernels, self.functions = function, kernels, functions
        self.evidence = evidence
        self.env: dict[str, HostValue] = {}
        self.numbers: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.names: dict[tuple[str, tuple[int, ...]], str] = {}
        self.versions: dict[str, int] = {}
        self.ever: set[str] = set()
        self.stmt: ast.stmt | None = None
        self.floats: set[str] = set()
        self.meta: Callable[[str], HostValue] | None = None
        self.given = self.ranks = Ranks({}, {})
        self.alike: list[tuple[Sym, Sym]] = []
        """Extents that one name stands for, one after the other: ``M, K = a.shape``, then ``K, N = b.shape``."""
        self.absent: set[str] = set()
        self.consulted: set[str] = set()
        self.parts: set[str] = set()
        self.preferred: dict[str, str] = {}
        self.assumed: Mapping[str, bool] = {}
        self.types: Mapping[str, str] = {}
        self.listed: dict[str, str] = {}
        """Element types that the host allows, as ``float16+bfloat16`` -> the condition for the first of them."""

    def name(self, text: str) -> Sym:
        """A variable for an integer that is known by a text."""
        key = text, tuple(self.versions.get(part, 0) for part in WORD.findall(text))
        if key in self.names:
            return var(self.names[key])
        name = "_".join(WORD.findall(text)) or "size"
        name = f"n_{name}" if name[0].isdigit() else name
        fresh, number = name, 1
        while fresh in self.texts:
            fresh, number = f"{name}_{number}", number + 1
        self.names[key] = fresh
        self.texts[fresh] = text
        return var(fresh)

    def changed(self, name: str) -> None:
        """A name gets another value: texts with it mean something else from here on, and than in another branch."""
        if name in self.env or name in self.ever:
            self.versions[name] = self.versions.get(name, 0) + 1
        self.ever.add(name)

    def tensor(self, text: str, rank: int | None, dtype: str | None, guess: int | None = None) -> Tensor:
        """A tensor whose shape has a name for each axis. ``guess``: its rank, where only uses of axes show it."""
        guessed, rank = rank is None and guess is not None, guess if rank is None else rank
        shape = None if rank is None else tuple(self.name(f"{text}.shape[{place}]") for place in range(rank))
        return Tensor(text, shape, dtype, guessed=guessed)

    def shown_by(self, name: str, shape: Shape) -> Shape:
        """The shape of a tensor that a name holds from now on. Extents that only its earlier value told get new names,
        as in ``x = x.view(-1, n)``."""
        held = {str(value.value) for value in self.env.values() if isinstance(value, Int)}
        told = {
            self.names[key]
            for key in self.names
            if name in (words := WORD.findall(key[0])) and key[1] != tuple(self.versions.get(w, 0) for w in words)
        }
        same = {
            old
            for old in told
            for place, extent in enumerate(shape)
            if str(extent) == old and self.texts[old] == f"{name}.shape[{place}]"
        }
        lost = told - held - same
        return tuple(
            self.name(f"{name}.shape[{place}]") if extent.names & lost else extent for place, extent in enumerate(shape)
        )

    def integer(self, value: HostValue, node: ast.expr) -> Sym | None:
        """A value as an integer; a name of unknown value is taken for one."""
        if isinstance(value, (bool, float)):
            return None
        if isinstance(value, Int):
            return value.value
        if isinstance(value, Unknown) and not value.number and isinstance(node, (ast.Name, ast.Call, ast.Attribute)):
            return self.name(value.text)
        return None

    def made(self, name: str, node: ast.Call, args: list[HostValue], words: Mapping[str | None, HostValue]) -> Tensor:
        """``torch.empty(...)`` and its like."""
        text = ast.unparse(node)
        if name == "tensor":
            listed = literal_shape(node.args[0]) if node.args else None
            return Tensor(text, listed, dtype_word(words, _type_of_items(node)), True)
        if name in ("arange", "linspace"):
            whole = name == "arange" and not any(isinstance(arg, float) for arg in args)
            dtype = dtype_word(words, "int64" if whole else "float32")
            return Tensor(text, (self.name(f"{text}.shape[0]"),), dtype, True)
        dtype = dtype_word(words, "int64" if name == "randint" else "float32")
        sizes = _sizes(name, args, words)
        if isinstance(sizes, Unknown) and self.function is not None and subscripted(self.function, sizes.text):
            return Tensor(text, None, dtype, True)
        if not isinstance(sizes, tuple):
            sizes = (sizes,)
        shape = [self.integer(size, arg) for size, arg in zip(sizes, self.nodes(node, len(sizes)), strict=True)]
        known = tuple(extent for extent in shape if extent is not None)
        return Tensor(text, known if len(known) == len(shape) else None, dtype, True)

    def nodes(self, node: ast.Call, count: int) -> list[ast.expr]:
        """The expressions of a shape, or names in their place."""
        first = node.args[0] if node.args else None
        if isinstance(first, (ast.Tuple, ast.List)) and len(first.elts) == count:
            return first.elts
        return list(node.args[:count]) if len(node.args) >= count else [ast.Name("size")] * count

    def method(
        self, owner: Tensor, name: str, node: ast.Call, args: list[HostValue], words: Mapping[str | None, HostValue]
    ) -> HostValue:
        """A method of a tensor."""
        text = ast.unparse(node)
        first = args[0] if args else None
        place = first.value.constant if isinstance(first, Int) else None
        if name in _TELLING:
            return self.told(owner, name, text, place, asked=bool(args))
        if name in ("view", "reshape", "flatten", "ravel"):
            return self.viewed(owner, name, node, args)
        if name in ("transpose", "swapaxes", "permute") and owner.shape is not None:
            return self.permuted(owner, name, text, args)
        if name in ("new_empty", "new_zeros", "new_ones"):
            made = self.made("empty", node, args, words)
            return Tensor(text, made.shape, dtype_word(words, owner.dtype), True)
        if name in SAME or name in SAME_MORE:
            return _like(owner, name, text, args, words)
        if name in TURNED:
            self.turned()
        found = self.of_axis(owner, name, text, place) if place is not None and name not in TURNED else None
        is_plain = name not in ("sum", "mean") or (not words and len(args) == 1)
        return Tensor(text, None, owner.dtype) if found is None or not is_plain else found

    def told(self, owner: Tensor, name: str, text: str, place: int | None, *, asked: bool) -> HostValue:
        """What a tensor tells about itself: ``asked`` of one axis, at ``place`` where that is known."""
        shape = owner.shape
        if name in ("numel", "nelement"):
            return Int(owner.elements if owner.elements is not None else self.name(text))
        if name in ("dim", "ndimension"):
            return Int(const(len(shape)) if shape is not None else self.name(text))
        if name == "stride":
            return self.stride(owner, place, text, asked)
        if name == "size" and shape is not None and not asked:
            return tuple(Int(extent) for extent in shape)
        if name == "size" and shape is not None and place is not None and -len(shape) <= place < len(shape):
            return Int(shape[place])
        if name == "size":
            return Int(self.name(text)) if asked else Unknown(text)
        width = element_bytes(owner.dtype) if name == "element_size" else None
        return Int(const(width)) if width else Unknown(text, number=name == "item")

    def of_axis(self, owner: Tensor, name: str, text: str, place: int) -> HostValue:
        """What a method makes of an axis, or of a number of parts; None for other methods."""
        shape = owner.shape
        if shape is None:
            return None
        if name in ("sum", "mean"):
            axis = place % len(shape) if shape else 0
            rest = tuple(extent for number, extent in enumerate(shape) if number != axis)
            return Tensor(text, rest, owner.dtype if "float" in (owner.dtype or "") else None, True)
        if name == "chunk" and place > 0:
            return tuple(self.tensor(f"{text}[{number}]", len(shape), owner.dtype) for number in range(place))
        if name == "unsqueeze" and place >= 0:
            return Tensor(text, (*shape[:place], const(1), *shape[place:]), owner.dtype, owner.fresh)
        return None

    def permuted(self, owner: Tensor, name: str, text: str, args: list[HostValue]) -> Tensor:
        """``x.transpose(1, 2)``, ``x.permute(0, 2, 1)``: another order of the axes, in the same memory."""
        assert owner.shape is not None
        rank = len(owner.shape)
        items = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        places = [item.value.constant for item in items if isinstance(item, Int)]
        axes = [place % rank for place in places if place is not None and -rank <= place < rank]
        order = list(range(rank))
        if name != "permute" and len(axes) == len(items) == 2:
            one, other = axes
            order[one], order[other] = order[other], order[one]
        elif name == "permute" and len(axes) == len(items) and sorted(axes) == order:
            order = axes
        else:
            return Tensor(text, None, owner.dtype)
        return Tensor(text, tuple(owner.shape[axis] for axis in order), owner.dtype, turned=True)

    def turned(self) -> None:
        """A tensor gets another shape or other strides: any may be it."""
        for name, value in self.env.items():
            if isinstance(value, Tensor):
                self.changed(name)
                self.env[name] = Tensor(name, None, value.dtype)

    def stride(self, owner: Tensor, place: int | None, text: str, one: bool) -> HostValue:
        """``x.stride(i)`` of a contiguous tensor."""
        if owner.shape is None:
            return Int(self.name(text)) if one else Unknown(text)
        steps = [const(1)]
        for extent in reversed(owner.shape[1:]):
            steps.insert(0, steps[0] * extent)
        if not one:
            return tuple(Int(step) for step in steps)
        if place is None or not -len(steps) <= place < len(steps):
            return Int(self.name(text))
        return Int(steps[place])

    def viewed(self, owner: Tensor, name: str, node: ast.Call, args: list[HostValue]) -> HostValue:
        """``x.view(...)``: a contiguous tensor with another shape."""
        text = ast.unparse(node)
        total = owner.elements
        if args and (dtype := dtype_of(args[0])) is not None:
            return Tensor(text, owner.shape if same_width(dtype, owner.dtype) else None, dtype, owner.fresh)
        if name in ("flatten", "ravel") and not args:
            return Tensor(text, None if total is None else (total,), owner.dtype, owner.fresh)
        if name == "flatten":
            return Tensor(text, self.flattened(owner, args), owner.dtype, owner.fresh)
        parts = args[0] if len(args) == 1 and isinstance(args[0], tuple) else tuple(args)
        shape: list[Sym | None] = []
        for number, part in enumerate(parts):
            arg = node.args[number] if len(node.args) > number else ast.Name("size")
            shape.append(self.integer(part, arg))
        if any(extent is None for extent in shape):
            return Tensor(text, None, owner.dtype, owner.fresh)
        found: Shape = tuple(extent for extent in shape if extent is not None)
        rest = [number for number, extent in enumerate(found) if extent.constant == -1]
        if len(rest) == 1:
            others = product(extent for number, extent in enumerate(found) if number != rest[0])
            quotient = total // others if total is not None else None
            whole = quotient if quotient is not None and total is not None and quotient * others == total else None
            found = tuple(
                (whole or self.name(f"{text}.shape[{n}]")) if n == rest[0] else e for n, e in enumerate(found)
            )
        return Tensor(text, found, owner.dtype, owner.fresh)


    def flattened(self, owner: Tensor, args: list[HostValue]) -> Shape | None:
        """``x.flatten(first, last)``: some axes as one; None where the shape is not known."""
        places = [arg.value.constant if isinstance(arg, Int) else None for arg in args]
        if owner.shape is None or owner.guessed or len(places) > 2 or None in places:
            return None
        rank = len(owner.shape)
        first, last = ([place % rank for place in places if place is not None] + [rank - 1])[:2]
        return *owner.shape[:first], product(owner.shape[first : last + 1]), *owner.shape[last + 1 :]


def _like(owner: Tensor, name: str, text: str, args: list[HostValue], words: Mapping[str | None, HostValue]) -> Tensor:
    """A tensor of the same shape, perhaps of another type or in other memory."""
    dtype = {"half": "float16", "float": "float32", "bfloat16": "bfloat16"}.get(name, owner.dtype)
    dtype = converted(args, words, owner.dtype) if name == "to" else dtype_word(words, dtype)
    fresh = (owner.fresh or name == "contiguous") and "memory_format" not in words
    turned = owner.turned and (name != "contiguous" or not fresh)
    return Tensor(text, owner.shape, dtype, fresh and not turned, owner.guessed, turned=turned)


def _type_of_items(node: ast.Call) -> str | None:
    """The type that ``torch.tensor`` takes from what it is given; None where that is not written out."""
    if any(isinstance(part, ast.Constant) and isinstance(part.value, float) for part in ast.walk(node)):
        return "float32"
    items = [part for part in ast.walk(node.args[0]) if not isinstance(part, _LISTS)] if node.args else []
    whole = items and all(isinstance(item, ast.Constant) and type(item.value) is int for item in items)
    return "int64" if whole else None


def _sizes(name: str, args: list[HostValue], words: Mapping[str | None, HostValue]) -> HostValue:
    """The shape that a maker of tensors is given: as one value, or as the values of its extents."""
    if name == "full" and args:
        return args[0]
    if "size" in words:
        return words["size"]
    if name == "randint" and args:
        return args[-1]
    return args[0] if len(args) == 1 and isinstance(args[0], (tuple, Unknown)) else tuple(args)
