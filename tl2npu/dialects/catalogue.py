"""What a dialect knows of one operator: signature, operand roles, core, and where the operator is legal.

The values are data only. ``bind`` is written so that the values of a call may be anything (tree nodes of libcst or
``ast``, or plain Python values): it looks at no more than the class of a value.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Literal

EXPERT = "expert"
DEVELOPER = "developer"

ParamKind = Literal["positional", "keyword", "variadic"]
Mask = Literal["", "r", "w", "rw"]


class Role(enum.Enum):
    """What an operator does with one argument."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read-write"
    ACCUMULATE = "accumulate"  # the old value of the destination goes into the new one
    SCALAR = "scalar"  # a number, an integer or float expression; may contain buffer loads
    COUNT = "count"  # a number of elements that grows and shrinks with the tile
    MODE = "mode"  # a constant string or a dtype
    SHAPE = "shape"  # a sequence of extents (or other constant sequence or mapping)
    FLAG = "flag"  # a Python bool or small constant that switches something


class Core(enum.Enum):
    """The core that an operator runs on."""

    CUBE = "cube"
    VECTOR = "vector"
    BOTH = "both"
    BY_OPERANDS = "by operands"  # the memories of the operands decide
    NONE = "none"  # declares or computes an expression, or follows the statement before it


class Kind(enum.Enum):
    """What sort of thing an operator is."""

    COPY = "copy"
    GEMM = "gemm"
    MMA = "mma"
    TILE = "tile"  # a vector instruction on UB tiles
    REDUCE = "reduce"
    FILL = "fill"
    ATOMIC = "atomic"
    ALLOC = "alloc"
    LOOP = "loop"
    SCOPE = "scope"
    SYNC = "sync"
    ANNOTATION = "annotation"
    LAUNCH = "launch"
    SCALAR = "scalar"  # an operator inside expressions: exp, max, ceildiv
    DEBUG = "debug"
    SYSTEM = "system"
    TYPE = "type"
    DECORATOR = "decorator"


_SEEN: dict[Role, Mask] = {Role.READ: "r", Role.WRITE: "w", Role.READ_WRITE: "rw", Role.ACCUMULATE: "rw"}


@dataclass(frozen=True)
class Param:
    """One parameter of an operator.

    ``default`` is the source text of the default value, None for a required parameter. ``scalar`` is True for a
    ``READ`` operand that may also be a number or one element of a buffer (``T.tile.mul(dst, src, s[h])``).
    ``seen`` is the access that the compiler's passes see where it is not what the operator really does.
    """

    name: str
    role: Role
    default: str | None = None
    kind: ParamKind = "positional"
    scalar: bool = False
    seen: Mask = ""

    @property
    def mask(self) -> Mask:
        """The access ("r", "w", "rw"; "" for no buffer) that the compiler's passes see.

        A pass that looks for "the first reader" of a buffer, such as workspace reduction, goes by this and not by
        the operator's meaning: ``T.tile.axpy`` reads its destination and is seen as a pure write.
        """
        return self.seen or _SEEN.get(self.role, "")

    @property
    def required(self) -> bool:
        """True if a call must give the argument."""
        return self.default is None and self.kind != "variadic"


@dataclass(frozen=True)
class Operator:
    """One operator of a dialect.

    ``name`` is relative to ``tilelang.language``. ``modes`` says where it is legal; empty for a name that exists but
    must not remain in an Ascend kernel. ``elementwise``: row *i* of the result depends on rows *i* of the operands
    only. ``row_independent``: the same, or on rows *i* reduced or spread along the row; where ``axis`` names a
    parameter, only if that parameter chooses the last axis (reduce: ``dim=-1``; broadcast: ``axis=1``).
    ``vid_aware``: compiler versions that adapt the operator's size to half tiles under ``threads=2``.
    ``extras``: names that the variadic positional arguments stand for, told apart by what they look like.
    ``meaning``: what an element-wise operator stores, in terms of its parameters; :mod:`tl2npu.tile.meaning` reads it.
    ``deviation``: how the compiler computes something else; empty where the meaning is what is computed.
    """

    name: str
    kind: Kind
    params: tuple[Param, ...]
    core: Core
    modes: frozenset[str]
    defined: str
    memory: str | None = None
    elementwise: bool = False
    row_independent: bool = False
    vid_aware: frozenset[str] = frozenset()
    note: str = ""
    axis: str | None = None
    extras: tuple[str, ...] = ()
    meaning: str = ""
    deviation: str = ""

    def param(self, name: str) -> Param | None:
        """The parameter of a name, or None. ``blocks0`` finds the variadic ``blocks``."""
        for param in self.params:
            if param.name == name:
                return param
        for param in self.params:
            if param.kind == "variadic" and name.startswith(param.name) and name[len(param.name) :].isdigit():
                return param
        return None

    @property
    def is_variadic(self) -> bool:
        """True if a call may give any number of arguments."""
        return any(param.kind == "variadic" for param in self.params)

    def takes_buffer(self, name: str) -> bool:
        """True for a parameter that must be given and can only be a buffer or a part of one."""
        param = self.param(name)
        return param is not None and bool(param.mask) and param.required and not param.scalar

    def bind(self, args: Sequence[tuple[str | None, object]]) -> dict[str, object]:
        """Match call arguments, ``(keyword or None, value)`` each, with parameters: parameter name -> value.

        Variadic arguments come as one tuple under the name of the variadic parameter, absent if there are none.
        Defaults are not filled in. Raises TypeError, with a message for a user, for a call that Python itself
        would reject: too many or missing arguments, an unknown keyword, one argument given twice.
        """
        plain = self._plainly_bound(args)
        return Binding(self, args).result() if plain is None else plain

    def _plainly_bound(self, args: Sequence[tuple[str | None, object]]) -> dict[str, object] | None:
        """What :class:`Binding` finds for a call with nothing special; None for any other."""
        slots, names = self._slots, self._names
        bound: dict[str, object] = {}
        by_place = True
        for place, (keyword, value) in enumerate(args):
            if keyword is None:
                if place >= len(slots) or not by_place:
                    return None
                bound[slots[place]] = value
            elif keyword not in names or keyword in bound:
                return None
            else:
                bound[keyword], by_place = value, False
        return bound if all(name in bound for name in self._required) else None

    @cached_property
    def _slots(self) -> list[str]:
        return [param.name for param in takewhile(lambda param: param.kind == "positional", self.params)]

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(param.name for param in self.params if param.kind != "variadic")

    @cached_property
    def _required(self) -> list[str]:
        return [param.name for param in self.params if param.required]

    def takes(self, args: Sequence[tuple[str | None, object]]) -> bool:
        """True if ``bind`` accepts the arguments."""
        try:
            self.bind(args)
        except TypeError:
            return False
        return True


@dataclass
class Binding:
    """The work of one ``Operator.bind``."""

    operator: Operator
    args: Sequence[tuple[str | None, object]]

    def result(self) -> dict[str, object]:
        """See ``Operator.bind``."""
        bound: dict[str, object] = {}
        for name, value in (*self._positional(), *self._keywords()):
            if name in bound:
                raise TypeError(f"{self.operator.name}() got multiple values for argument '{name}'")
            bound[name] = value
        missing = [param.name for param in self.operator.params if param.required and param.name not in bound]
        if missing:
            listed = ", ".join(f"'{name}'" for name in missing)
            raise TypeError(f"{self.operator.name}() misses {len(missing)} required argument(s): {listed}")
        return bound

    def _positional(self) -> Iterator[tuple[str, object]]:
        values = [value for keyword, value in self.args if keyword is None]
        slots = self._slots()
        yield from zip(slots, values, strict=False)
        rest = values[len(slots) :]
        if not rest:
            return
        variadic = next((param.name for param in self.operator.params if param.kind == "variadic"), None)
        if variadic is None or (self.operator.extras and len(rest) > len(self.operator.extras)):
            limit = len(slots) + len(self.operator.extras)
            raise TypeError(f"{self.operator.name}() takes {limit} positional arguments but {len(values)} were given")
        if self.operator.extras:
            yield from self._extras(rest)
        else:
            yield variadic, tuple(rest)

    def _slots(self) -> list[str]:
        """Names of the parameters that positional arguments fill; those behind ``*args`` take keywords only."""
        slots = []
        for param in self.operator.params:
            if param.kind != "positional":
                break
            slots.append(param.name)
        return slots

    def _extras(self, values: Sequence[object]) -> Iterator[tuple[str, object]]:
        free = list(self.operator.extras)
        given = {keyword for keyword, _ in self.args}
        for value in values:
            looks = _looks(value)
            like = [name for name in free if self._role(name) is looks]
            name = next(iter(like or [name for name in free if name not in given] or free))
            free.remove(name)
            yield name, value

    def _role(self, name: str) -> Role | None:
        param = self.operator.param(name)
        return param.role if param else None

    def _keywords(self) -> Iterator[tuple[str, object]]:
        names = [param.name for param in self.operator.params if param.kind != "variadic"]
        for keyword, value in self.args:
            if keyword is None:
                continue
            if keyword not in names:
                close = difflib.get_close_matches(keyword, names, n=1)
                hint = f"; did you mean '{close[0]}'?" if close else ""
                raise TypeError(f"{self.operator.name}() got an unexpected keyword argument '{keyword}'{hint}")
            yield keyword, value


def _looks(value: object) -> Role | None:
    """What the class of an argument says: a sequence display is a SHAPE, a string a MODE, anything else unknown.

    The class names are the same in ``libcst``, in ``ast`` and for plain values, so no tree library is needed here.
    """
    if type(value).__name__.lower() in ("list", "tuple"):
        return Role.SHAPE
    text = getattr(value, "value", value)  # an ``ast.Constant`` holds its string in ``value``
    if type(value).__name__ in ("SimpleString", "ConcatenatedString", "FormattedString", "JoinedStr"):
        return Role.MODE
    return Role.MODE if isinstance(text, str) and type(value).__name__ in ("str", "Constant") else None
