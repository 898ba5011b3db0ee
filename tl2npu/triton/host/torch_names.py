"""What host code calls of torch, and what its expressions show by themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from tl2npu.dialects.triton.operators import DTYPES as TRITON_DTYPES
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.source.tree import remembered
from tl2npu.triton.host.values import HostValue, Shape, Unknown

DTYPES = {
    **{f"torch.{name}": name for name in ("float16", "float32", "bfloat16", "float64", "int8", "int16", "int32")},
    "torch.int64": "int64",
    "torch.uint8": "uint8",
    "torch.float8_e5m2": "float8_e5m2",
    "torch.float8_e4m3fn": "float8_e4m3",
    "torch.bool": "bool",
    "torch.half": "float16",
    "torch.float": "float32",
    "torch.double": "float64",
    "torch.long": "int64",
    "torch.int": "int32",
    **{f"{owner}.{name}": kind for owner in ("tl", "triton.language") for name, kind in TRITON_DTYPES.items()},
}
"""Element types: the name in host code -> the type's name in TileLang."""
WORD = re.compile(r"\w+")
LIKE = frozenset({"empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like"})
MAKERS = frozenset({"empty", "zeros", "ones", "rand", "randn", "full", "randint", "tensor", "arange", "linspace"})
SAME = frozenset({"cuda", "npu", "to", "clone", "detach", "requires_grad_", "half", "float", "bfloat16", "contiguous"})
SAME_MORE = frozenset(
    {"abs", "abs_", "fill_", "zero_", "normal_", "uniform_", "softmax", "sigmoid", "exp", "cpu", "triu", "tril"}
)
TURNED = frozenset("t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ resize_ resize_as_ as_strided_ set_".split())
"""Methods that change the shape or the strides of the tensor itself."""


def literal_shape(node: ast.expr) -> Shape | None:
    """The shape of a nested list."""
    shape: list[Sym] = []
    while isinstance(node, (ast.List, ast.Tuple)):
        shape.append(const(len(node.elts)))
        if not node.elts:
            break
        node = node.elts[0]
    return tuple(shape) if shape else None


@remembered
def assigned(stmt: ast.stmt | ast.ExceptHandler | ast.pattern) -> frozenset[str]:
    """Names that a statement sets."""
    captured = frozenset(n.name for n in ast.walk(stmt) if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name)
    return captured | {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def is_part(node: ast.expr) -> bool:
    """True for parts of a tensor along another axis than the first, which are not contiguous."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] not in ("chunk", "split"):
        return False
    axes = [*node.args[-1:][: len(node.args) - 1], *(word.value for word in node.keywords if word.arg == "dim")]
    return any(ast.unparse(axis) != "0" for axis in axes)


def subscripted(function: ast.FunctionDef, name: str) -> bool:
    """True for a name that a function takes items of, which makes it no integer."""
    nodes = ast.walk(function)
    return any(isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id == name for n in nodes)


def annotated(arg: ast.arg, name: str) -> bool:
    """True for a parameter that is annotated with a type of this name."""
    return arg.annotation is not None and ast.unparse(arg.annotation).strip("'").rpartition(".")[2] == name


def dtype_word(words: Mapping[str | None, HostValue], default: str | None) -> str | None:
    """The element type that a call gives as ``dtype=``; None where its text does not show which."""
    return default if words.get("dtype") is None else dtype_of(words["dtype"])


def converted(args: Iterable[HostValue], words: Mapping[str | None, HostValue], own: str | None) -> str | None:
    """The element type after ``x.to(...)``."""
    types = [a for a in args if isinstance(a, Unknown) and (a.text in DTYPES or a.text.rpartition(".")[2] == "dtype")]
    return dtype_of(types[0]) if types else dtype_word(words, own)


def element_bytes(dtype: str | None) -> int | None:
    """How many bytes an element of a known type has."""
    digits = re.findall(r"\d+$", dtype or "")
    return int(digits[0]) // 8 if digits else 1 if dtype == "bool" else None


def same_width(one: str, other: str | None) -> bool:
    """True for element types of as many bits."""
    digits = [re.findall(r"\d+", name or "?") or ["8"] for name in (one, other)]
    return digits[0] == digits[1]


def dtype_of(value: HostValue) -> str | None:
    """The element type that a value is."""
    return DTYPES.get(value.text) if isinstance(value, Unknown) else None


def is_float(node: ast.expr) -> bool:
    """True for arithmetic that gives a float whatever the names are."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div) or is_float(node.left) or is_float(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.UnaryOp):
        return is_float(node.operand)
    if isinstance(node, ast.IfExp):
        return is_float(node.body) or is_float(node.orelse)
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in ("sqrt", "float", "log2", "log", "exp", "rsqrt")
    return False
