"""Calls in expressions: of the language, of Python, and of functions of the user's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.dialects.catalogue import Operator
from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.expressions import CORES, Expressions
from tl2npu.evaluate.values import Function, NotChecked
from tl2npu.kernel import languages
from tl2npu.kernel.expressions import code

_BUILTIN: Mapping[str, Callable[..., object]] = {
    "len": len,
    "abs": np.abs,
    "max": lambda *values: _extreme(np.maximum, values),
    "min": lambda *values: _extreme(np.minimum, values),
    "int": lambda value: int(value) if np.ndim(value) == 0 else arithmetic.cast(value, "int64"),
    "float": lambda value=0.0: float(value) if np.ndim(value) == 0 else arithmetic.cast(value, "float64"),
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
_OF_HOSTS: Mapping[str, object] = {
    "is_available": True,
    "get_num_sms": CORES,
    "get_device_capability": (9, 0),
    "get_device_name": "device",
}
"""What a machine is asked for."""


class Calls(Expressions):
    """Evaluates calls."""

    def operator(self, func: cst.BaseExpression) -> Operator | None:
        """The catalogue entry of a called expression."""
        if isinstance(func, cst.Name):
            try:
                self.frame.find(func.value)
                return None
            except KeyError:
                pass
        resolved = self.names.resolve(func)
        return None if resolved is None else languages.lookup(self.dialect, resolved)

    def function(self, func: cst.BaseExpression) -> Function | None:
        """A function of the user's that an expression calls."""
        if not isinstance(func, cst.Name):
            return None
        try:
            found = self.frame.find(func.value)
        except KeyError:
            return None
        return found if isinstance(found, Function) else None

    def called(self, function: Function, node: cst.Call) -> object:
        """The value of a call of a function of the user's, for :mod:`tl2npu.evaluate.statements`."""
        raise NotImplementedError

    def call(self, node: cst.Call) -> object:
        mine = self.function(node.func)
        if mine is not None:
            return self.called(mine, node)
        if isinstance(node.func, cst.Attribute) and self.names.resolve(node.func) is None:
            method = node.func.attr.value
            if method in ("strip", "lower", "upper") and isinstance(text := self.value(node.func.value), str):
                return getattr(text, method)()
            if method == "astype" and len(node.args) == 1:
                return arithmetic.cast(self.value(node.func.value), self.dtype(node.args[0].value))[()]
            raise NotChecked(f"`{code(node)}` has no meaning here")
        resolved = self.names.resolve(node.func) or ""
        module, _, name = resolved.rpartition(".")
        args = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
        if any(arg.star for arg in node.args):
            raise NotChecked(f"`{code(node)}` has arguments with stars")
        if not resolved and isinstance(node.func, cst.Name) and node.func.value in _BUILTIN:
            return self._of_python(node, args)
        if name in _OF_HOSTS:
            return _OF_HOSTS[name]
        if module in ("math", "numpy") and hasattr(math, name):
            return getattr(math, name)(*map(self.value, args))
        if name in _OF_HOSTS:
            return _OF_HOSTS[name]
        if module.split(".")[0] == "tilelang" or module in ("tvm.tir", "tvm.tirx", "tir"):
            return self._of_language(name, node, args)
        raise NotChecked(f"`{code(node.func)}` is not known")

    def _of_python(self, node: cst.Call, args: list[cst.BaseExpression]) -> object:
        assert isinstance(node.func, cst.Name)
        values = [self.value(arg) for arg in args]
        if node.func.value == "float" and values and isinstance(values[0], str):
            return float(values[0])
        return _BUILTIN[node.func.value](*values)

    def _of_language(self, name: str, node: cst.Call, args: list[cst.BaseExpression]) -> Any:
        self.spend(math.prod(self.lanes))
        if name in ("symbolic", "dynamic", "dyn", "var") and args:
            return self._symbol(node, args)
        if name in ("cast", "Cast") and len(args) == 2:
            typed = args if name == "cast" else args[::-1]
            return arithmetic.cast(self.number(typed[0]), self.dtype(typed[1]))[()]
        if name == "infinity":
            return math.inf
        if name in ("max_value", "min_value") and args:
            return arithmetic.closest(self.dtype(args[0]), name == "min_value")
        if name == "next_power_of_2":
            return 1 << max(0, self.whole(args[0]) - 1).bit_length()
        if name == "get_block_binding" and len(args) <= 1:
            return self.binding(self.whole(args[0]) if args else 0)
        if name == "get_thread_binding" and len(args) <= 1:
            return self.thread(self.whole(args[0]) if args else 0)
        if name == "get_thread_bindings" and not args:
            return tuple(self.thread(axis) for axis in range(3))
        if name in ("address_of", "region") and args:
            return self.raw(args[0])
        if name == "dtype" and args:
            return self.value(args[0])
        if name == "const" and args:
            if len(args) == 1:
                return self._symbol(node, args) if isinstance(args[0], cst.SimpleString) else self.value(args[0])
            return arithmetic.cast(self.number(args[0]), self.dtype(args[1]))[()]
        if name == "reinterpret" and len(args) == 2:
            return self._reinterpreted(*args)
        if name in ("if_then_else", "Select") and len(args) == 3:
            test = self.value(args[0])
            if np.ndim(test) == 0:
                return self.number(args[1] if bool(test) else args[2])
        try:
            arithmetic.storage(name)
            if len(args) == 1:
                return arithmetic.cast(self.number(args[0]), name)[()]
        except ValueError:
            pass
        function = arithmetic.function(name)
        if function is None or any(arg.keyword is not None for arg in node.args):
            raise NotChecked(f"`{code(node.func)}` has no meaning here")
        values = [self.number(arg) for arg in args]
        found = function(*values)
        if isinstance(found, np.ndarray) and found.ndim == 0:
            found = found[()]
        all_python = all(isinstance(value, (int, float)) for value in values)
        return found.item() if all_python and isinstance(found, np.generic) else found

    def _reinterpreted(self, left: cst.BaseExpression, right: cst.BaseExpression) -> Any:
        """The bits of an integer as another integer; which argument is the type differs from version to version."""
        first, second = self.value(left), self.value(right)
        dtype, value = (first, second) if isinstance(first, str) else (second, first)
        if not isinstance(dtype, str) or not arithmetic.bits(dtype) or np.asarray(value).dtype.kind == "f":
            raise NotChecked("the bits of a float have no meaning here")
        return arithmetic.cast(value, dtype)[()]

    def _symbol(self, node: cst.Call, args: list[cst.BaseExpression]) -> object:
        text = self.value(args[0])
        texts = [one.strip() for one in str(text).split(",")]
        if all(one in self.symbols for one in texts):
            return self.symbols[texts[0]] if len(texts) == 1 else tuple(self.symbols[one] for one in texts)
        raise NotChecked(f"the size `{code(node)}` is not known")

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


def _extreme(function: Callable[[Any, Any], Any], values: tuple[Any, ...]) -> object:
    items = list(values[0]) if len(values) == 1 else list(values)
    found = items[0]
    for item in items[1:]:
        found = function(found, item)
    return found if np.ndim(found) else found.item() if isinstance(found, np.generic) else found
