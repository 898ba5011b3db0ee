"""The names of a prim_func as its parser keeps them: a frame for each block, forgotten behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import libcst as cst

from tl2npu.dialects.catalogue import Operator
from tl2npu.kernel.bindings import target_names
from tl2npu.kernel.parser.scalar_types import holds
from tl2npu.kernel.parser.values import NONE, UNKNOWN, Parsed, Stop, assigned
from tl2npu.kernel.undefined import not_defined
from tl2npu.source.names import Names
from tl2npu.source.tree import mentioned, walk

What = Literal[
    "stop",
    "choice",
    "index",
    "sequence",
    "size",
    "value",
    "half",
    "types",
    "number",
    "connective",
    "annotation",
    "undefined",
    "stale",
    "unused",
    "wide",
]


@dataclass(frozen=True, eq=False)
class Found:
    """What the parser does not do as Python does.

    ``choice``: ``a if b else c`` by a run-time value; ``index``: an index or what has one; ``sequence``: one of a
    Python sequence; ``size``: the extent of a tile or a loop; ``value``: a number that is given a type which does not
    hold it; ``half``: arithmetic of float16 scalars, at which BiSheng stops; ``unused``: a comparison as a statement;
    ``number``: a number that is used as a condition; ``connective``: ``T.And``, ``T.Or`` or ``T.Not`` of a value that
    Python knows; ``types``: a comparison of two types, ``sides`` are what is compared; ``wide``: what makes an index
    or an extent an int64 (:mod:`tl2npu.kernel.clamped` says where that matters). ``lost``: the assignment whose value
    the parser forgets; ``meant``: its old value is what such text means: that of an outer loop, or the block's
    index in each turn.
    """

    what: What
    node: cst.CSTNode
    message: str
    sides: tuple[Parsed, ...] = ()
    lost: cst.CSTNode | None = None
    meant: bool = False

    @property
    def stops(self) -> bool:
        """Whether the parser goes no further, whatever the text around it is."""
        return self.what in ("stop", "choice", "index", "sequence", "size")


@dataclass
class Frame:
    values: dict[str, Parsed] = field(default_factory=dict)
    bound_at: dict[str, cst.CSTNode] = field(default_factory=dict)
    stale: dict[str, cst.CSTNode] = field(default_factory=dict)
    """Names that an inner frame bound again, and where."""


@dataclass(frozen=True)
class Surroundings:
    """What is around a kernel: names of the factory and the module, operators, element types by their text.

    ``outer`` gives None for a name that nothing binds.
    """

    names: Names
    outer: Callable[[str], Parsed | None]
    is_global: Callable[[str], bool]
    operator: Callable[[str], Operator | None]
    type_of: Callable[[str], str]


class Scopes(ABC):
    """Names, frames and what is found: what :class:`tl2npu.kernel.parser.statements.FrontEnd` has without syntax."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.found: list[Found] = []
        self.frames: list[Frame] = []
        self.own: frozenset[str] = frozenset()
        self.told: set[tuple[int, str]] = set()
        self.outer_stale: dict[str, cst.CSTNode] = {}
        self.forgotten: dict[str, cst.CSTNode] = {}
        self.undefined: set[str] = set()

    @abstractmethod
    def value(self, node: cst.BaseExpression) -> Parsed:
        """What the parser makes of an expression."""

    @abstractmethod
    def condition(self, node: cst.BaseExpression, where: str) -> Parsed:
        """An expression that is used as a condition; ``where`` is empty if a number is good there."""

    @abstractmethod
    def macro(self, node: cst.FunctionDef, params: Mapping[str, Parsed]) -> None:
        """Read a macro where it is called."""

    def tell(self, what: What, node: cst.CSTNode, message: str, sides: tuple[Parsed, ...] = ()) -> None:
        """Say something of a node, once."""
        self._add(Found(what, node, message, sides))

    def fits(self, node: cst.CSTNode, dtype: str, *parts: Parsed) -> None:
        """Say of the numbers among values that they do not fit the type to which a node converts them."""
        for part in parts:
            if part.number is not None and not holds(dtype, part.number):
                number = f"{part.number:g}" if isinstance(part.number, float) else str(part.number)
                self.tell("value", node, f"`{short(node)}` converts {number} to {dtype}, which cannot hold it")

    def _add(self, found: Found) -> None:
        if (id(found.node), found.what) not in self.told:
            self.told.add((id(found.node), found.what))
            self.found.append(found)

    @contextmanager
    def frame(self) -> Iterator[Frame]:
        """A frame of names; behind it, what it bound again is stale."""
        made = Frame()
        self.frames.append(made)
        yield made
        self.frames.pop()
        self.forget(made)

    def forget(self, frame: Frame) -> None:
        for name, node in frame.bound_at.items():
            self.mark(name, node)

    def mark(self, name: str, node: cst.CSTNode) -> None:
        """Behind an inner block, or in the next turn of a loop, Python would have the value of ``node``."""
        for frame in reversed(self.frames):
            if name in frame.values:
                if frame.values[name].kind != "cell":
                    frame.stale[name] = node
                return
        if self._outer(name) is not None:
            self.outer_stale[name] = node
        else:
            self.forgotten[name] = node

    def _outer(self, name: str) -> Parsed | None:
        """A name of the factory is none of the kernel's if the kernel binds it anywhere; one of the module is."""
        return None if name in self.own and not self.around.is_global(name) else self.around.outer(name)

    def name(self, node: cst.Name) -> Parsed:
        """What a name stands for."""
        name = node.value
        if name in ("True", "False"):
            return Parsed("number", "bool")
        if name == "None":
            return NONE
        for frame in reversed(self.frames):
            if name in frame.values:
                self._stale(node, frame.stale.get(name), frame.bound_at.get(name))
                return frame.values[name]
        outer = self._outer(name)
        if outer is not None:
            self._stale(node, self.outer_stale.get(name), None)
            return outer
        text = not_defined(self.around.names, node)
        if name in self.forgotten:
            text = f"`{name}` is assigned in an inner block only, and is undefined after it"
        elif name in self.own:
            text = f"`{name}` is used before it is assigned"
        if name not in self.undefined:
            self.undefined.add(name)
            self.tell("undefined", node, text)
        return UNKNOWN

    def _stale(self, node: cst.Name, lost: cst.CSTNode | None, first: cst.CSTNode | None) -> None:
        """Say that a name has the value of ``first``, not that of ``lost``, which Python would give."""
        turns = (cst.For, cst.With)
        if lost is not None and not (isinstance(lost, turns) and isinstance(first, turns)):
            statement = isinstance(lost, cst.BaseSmallStatement)
            what = f"`{short(lost)}`" if statement else "its value in the loop"
            text = f"`{node.value}` has its old value here: {what} has no effect after its block"
            index = isinstance(first, cst.With) and any(part is node for part in walk(lost))
            if index and any(isinstance(self._bound_at(name), cst.For) for name in mentioned(lost)):
                return  # tile `i` of this block: it is to count from the launch in every iteration
            self._add(Found("stale", node, text, lost=lost, meant=index or not statement))

    def _bound_at(self, name: str) -> cst.CSTNode | None:
        return next((frame.bound_at.get(name) for frame in reversed(self.frames) if name in frame.values), None)

    def bind(self, target: cst.BaseExpression, value: Parsed, node: cst.CSTNode) -> None:
        """``target = value``."""
        if isinstance(target, cst.Name):
            frame = self.frames[-1]
            frame.values[target.value] = value
            frame.bound_at[target.value] = node
            frame.stale.pop(target.value, None)
        elif isinstance(target, (cst.Tuple, cst.List)):
            parts = value.items if value.items is not None and len(value.items) == len(target.elements) else None
            starred = any(isinstance(element, cst.StarredElement) for element in target.elements)
            for index, element in enumerate(target.elements):
                given = UNKNOWN if parts is None or starred else parts[index]
                self.bind(element.value, variable(given) if value.kind == "items" else given, node)
        else:
            self.tell("stop", node, f"a kernel cannot assign to `{short(target)}`, only to names and single elements")

    def bind_all(self, target: cst.BaseExpression, value: Parsed, node: cst.CSTNode) -> None:
        """Bind every name of a target to the same value."""
        if isinstance(target, (cst.Name, cst.Tuple, cst.List)):
            for name in target_names(target):
                self.bind(cst.Name(name), value, node)
        else:
            self.tell("stop", node, f"a kernel cannot assign to `{short(target)}` here, only to names")

    def is_cell(self, name: str) -> bool:
        for frame in reversed(self.frames):
            if name in frame.values:
                return frame.values[name].kind == "cell"
        return False


def variable(value: Parsed) -> Parsed:
    try:
        return assigned(value) if value.kind != "done" else UNKNOWN
    except Stop:
        return UNKNOWN


def short(node: cst.CSTNode) -> str:
    text = " ".join(cst.Module(body=()).code_for_node(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
