"""Calls in expressions: of the language, of Python, and of functions of the user's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.dialects.catalogue import Operator
from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.expressions import CORES, Expressions, number
from tl2npu.evaluate.values import Function, NotChecked
from tl2npu.kernel import languages
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import code
from tl2npu.kernel.style import NPUIR, Dialect
from tl2npu.source.names import Names

_BUILTIN: Mapping[str, Callable[..., object]] = {
    "len": len,
    "abs": np.abs,
    "max": lambda *values: _extreme(np.maximum, values),
    "min": lambda *values: _extreme(np.minimum, values),
    "int": lambda value: int(value) if np.ndim(value) == 0 else arithmetic.cast(value, "int64"),
    "float": lambda value=0.0: arithmetic.cast(value, "float64") if np.ndim(value) else float(value),
    "bool": lambda value: bool(value),
    "round": round,
    "tuple": tuple,
    "list": list,
    "range": range,
    "enumerate": lambda values: list(enumerate(values)),
    "reversed": lambda values: list(reversed(values)),
    "sum": sum,
    "str": str,
}
Args = Sequence[cst.BaseExpression]
_OF_HOSTS: Mapping[str, object] = {
    "is_available": True,
    "get_num_sms": CORES,
    "get_device_capability": (9, 0),
    "get_device_name": "device",
    "get_device_properties": "device",
}
"""What a machine is asked for."""

_EXTENT = re.compile(r"(\w+)_(plus|minus)_(\d+)")


class Calls(Expressions):
    """Evaluates calls."""

    def __init__(self, names: Names, dialect: Dialect) -> None:
        super().__init__(names, dialect)
        self._operators: dict[int, Operator | None] = {}
        self._calls: dict[int, Callable[[], object]] = {}

    def operator(self, func: cst.BaseExpression) -> Operator | None:
        """The catalogue entry of a called expression."""
        if type(func) is cst.Name and self.frame.find(func.value) is not None:
            return None
        if id(func) not in self._operators:
            resolved = self.names.resolve(func)
            self._operators[id(func)] = None if resolved is None else languages.lookup(self.dialect, resolved)
        return self._operators[id(func)]

    def function(self, func: cst.BaseExpression) -> Function | None:
        """A function of the user's that an expression calls."""
        found = self.frame.find(func.value) if type(func) is cst.Name else None
        return found if isinstance(found, Function) else None

    def called(self, function: Function, node: cst.Call) -> object:
        """The value of a call of a function of the user's, for :mod:`tl2npu.evaluate.statements`."""
        raise NotImplementedError

    def call(self, node: cst.Call) -> object:
        mine = self.function(node.func)
        if mine is not None:
            return self.called(mine, node)
        if id(node) not in self._calls:
            self._calls[id(node)] = self._read(node)
        return self._calls[id(node)]()

    def _read(self, node: cst.Call) -> Callable[[], object]:
        """A call as a function, by what is called."""
        args = [arg.value for arg in node.args if arg.keyword is None or arg.keyword.value == "thread"]
        if any(arg.star for arg in node.args):
            raise NotChecked(f"`{code(node)}` has arguments with stars")
        resolved = self.names.resolve(node.func)
        module, _, name = (resolved or "").rpartition(".")
        if resolved is None and isinstance(node.func, cst.Attribute):
            method, holder = node.func.attr.value, node.func.value
            return lambda: self._method(node, method, self.value(holder), args)
        if not resolved and isinstance(node.func, cst.Name) and node.func.value in _BUILTIN:
            builtin = _BUILTIN[node.func.value]
            return lambda: builtin(*map(self.value, args))
        if name in _OF_HOSTS:
            return lambda: _OF_HOSTS[name]
        if module in ("math", "numpy") and hasattr(math, name):
            return lambda: getattr(math, name)(*map(self.value, args))
        if name == "DataType":
            return lambda: self.dtype(args[0])
        if module.split(".")[0] == "tilelang" or module in ("tvm.tir", "tvm.tirx", "tir"):
            return self._of_language(name, node, args)
        raise NotChecked(f"`{code(node.func)}` is not known")

    def _method(self, node: cst.Call, method: str, holder: object, args: Args) -> object:
        if method in ("strip", "lower", "upper") and isinstance(holder, str):
            return getattr(holder, method)()
        if method == "astype" and len(args) == 1:
            return self.converted(holder, self.dtype(args[0]))
        raise NotChecked(f"`{code(node)}` has no meaning here")

    def _of_language(self, name: str, node: cst.Call, args: Args) -> Callable[[], object]:
        special = _OF_LANGUAGE.get(name)
        if special is not None:
            return lambda: special(self, args)
        if len(args) == 1 and arithmetic.is_stored(name):
            return lambda: self.converted(self.number(args[0]), name)
        function = arithmetic.function(name)
        if function is None or len(args) < len(node.args):
            raise NotChecked(f"`{code(node.func)}` has no meaning here")

        numbers = [number(arg) for arg in args]

        def applied() -> object:
            self.spend(math.prod(self.lanes))
            values = [value_of(self) for value_of in numbers]
            found = function(*values)
            if isinstance(found, np.ndarray) and found.ndim == 0:
                found = found[()]
            all_python = isinstance(found, np.generic) and all(isinstance(one, (int, float)) for one in values)
            return found.item() if all_python else found

        return applied

    def selected(self, args: Args) -> object:
        """``T.if_then_else``: only the side that is taken, if it is the same for all lanes."""
        test = self.value(args[0])
        if np.ndim(test) == 0:
            return self.number(args[1] if bool(test) else args[2])
        return np.where(test, self.number(args[1]), self.number(args[2]))

    def reinterpreted(self, args: Args) -> object:
        """The bits of an integer as another type; which argument is the type differs from version to version."""
        first, second = map(self.value, args)
        dtype, value = (first, second) if isinstance(first, str) else (second, first)
        if not isinstance(dtype, str) or np.asarray(value).dtype.kind == "f":
            raise NotChecked("the bits of a float have no meaning here")
        if arithmetic.bits(dtype):
            return arithmetic.cast(value, dtype)[()]
        if plain(dtype) not in arithmetic.BITS:
            raise NotChecked(f"the bits of `{dtype}` have no meaning here")
        return arithmetic.of_bits(value, dtype)

    def symbol(self, args: Args) -> object:
        """Sizes that only a launch knows, by their text."""
        texts = [one.strip() for one in str(self.value(args[0])).split(",")]
        for one in texts:  # `n_plus_1` names the extent `n + 1` of the old kernel
            if (found := _EXTENT.fullmatch(one)) and found[1] in self.symbols:
                self.symbols.setdefault(one, self.symbols[found[1]] + int(found[3]) * (-1) ** (found[2] == "minus"))
        if all(one in self.symbols for one in texts):
            return self.symbols[texts[0]] if len(texts) == 1 else tuple(self.symbols[one] for one in texts)
        raise NotChecked(f"the size `{code(args[0])}` is not known")

    def constant(self, args: Args) -> object:
        """``T.const``: a size, a number, or a number with its type."""
        if len(args) == 1:
            return self.symbol(args) if isinstance(args[0], cst.SimpleString) else self.value(args[0])
        return self.typed(*args)

    def typed(self, value: cst.BaseExpression, dtype: cst.BaseExpression) -> object:
        """A number as an element type holds it."""
        self.spend(math.prod(self.lanes))
        return self.converted(self.number(value), self.dtype(dtype))

    def converted(self, value: object, dtype: str) -> Any:
        """Values as an element type holds them.

        AscendNPU IR rounds floats to nearest even in a loop that it vectorises, and cuts off in others
        (``npu_loop_vectorize.cc``). Raises :class:`NotChecked` where that is not the same.
        """
        found = arithmetic.cast(value, dtype)
        rounds = self.dialect == NPUIR and bool(self.lanes) and found.dtype.kind in "iu"
        if rounds and np.any(arithmetic.cast(value, dtype, "CAST_RINT") != found):
            raise NotChecked("how a loop rounds is the choice of the compiler")
        return found[()]

    def dtype(self, node: cst.BaseExpression) -> str:
        """An element type by its name."""
        found = self.value(node)
        if not isinstance(found, str):
            raise NotChecked(f"the element type `{code(node)}` is not known")
        return found

    def binding(self, axis: int) -> object:
        """The number of the block, or of the vector core, for :mod:`tl2npu.evaluate.statements`."""
        raise NotImplementedError

    def thread(self, axis: int) -> object:
        """The number of the thread, for :mod:`tl2npu.evaluate.statements`."""
        raise NotImplementedError


_OF_LANGUAGE: Mapping[str, Callable[[Calls, Args], object]] = {
    **dict.fromkeys(("symbolic", "dynamic", "dyn", "var"), Calls.symbol),
    "const": Calls.constant,
    "cast": lambda calls, args: calls.typed(args[0], args[1]),
    "Cast": lambda calls, args: calls.typed(args[1], args[0]),
    "infinity": lambda calls, args: math.inf,
    "max_value": lambda calls, args: arithmetic.closest(calls.dtype(args[0]), least=False),
    "min_value": lambda calls, args: arithmetic.closest(calls.dtype(args[0]), least=True),
    "next_power_of_2": lambda calls, args: 1 << max(0, calls.whole(args[0]) - 1).bit_length(),
    "get_block_binding": lambda calls, args: calls.binding(calls.whole(args[0]) if args else 0),
    "get_thread_binding": lambda calls, args: calls.thread(calls.whole(args[0]) if args else 0),
    "thread_binding": lambda calls, args: calls.thread("xyz".index(calls.value(args[-1])[-1])),
    "get_thread_bindings": lambda calls, args: tuple(map(calls.thread, range(3))),
    "address_of": lambda calls, args: calls.raw(args[0]),
    "region": lambda calls, args: calls.raw(args[0]),
    "dtype": lambda calls, args: calls.value(args[0]),
    **dict.fromkeys(("use_swizzle", "npu_use_swizzle"), lambda calls, args: calls.value(args[0])),  # any order will do
    "reinterpret": Calls.reinterpreted,
    "if_then_else": Calls.selected,
    "Select": Calls.selected,
}


def _extreme(function: Callable[[Any, Any], Any], values: tuple[Any, ...]) -> object:
    items = list(values[0]) if len(values) == 1 else list(values)
    found = items[0]
    for item in items[1:]:
        found = function(found, item)
    return found if np.ndim(found) else found.item() if isinstance(found, np.generic) else found
