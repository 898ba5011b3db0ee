"""Single mutations of a migrated file: each is one thing that a wrong migration could have written.

The text outside of the mutation stays as it is, so that lines and comments keep their places. The order is fixed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

Edit = tuple[ast.AST, str]
"""A node, and the text that stands in its place."""

COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<", ">="),
    ast.Gt: (">=", "<"),
    ast.GtE: (">", "<="),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.FloorDiv: "%",
    ast.Mod: "//",
}
OPERATORS = {
    "max": "min",
    "min": "max",
    "add": "sub",
    "sub": "add",
    "mul": "add",
    "div": "mul",
    "adds": "subs",
    "muls": "adds",
    "exp": "abs",
    "ln": "abs",
    "sqrt": "abs",
    "rsqrt": "reciprocal",
    "reciprocal": "rsqrt",
    "reduce_max": "reduce_min",
    "reduce_min": "reduce_max",
    "reduce_sum": "reduce_max",
    "ceildiv": "floordiv",
}
IN_TURN = ("sub", "div")
"""Operators of which the operands stand in an order."""
FLOATS = {"float32": "float16", "float": "float16", "float16": "float32", "bfloat16": "float16", "int32": "int8"}
KEYS = ("TL_ASCEND_AUTO_CV_COMBINE", "TL_ASCEND_AUTO_CV_SYNC", "TL_ASCEND_AUTO_SYNC", "TL_ASCEND_MEMORY_PLANNING")
LOOPS = ("serial", "Parallel", "Pipelined", "range", "unroll", "Kernel")
ALLOCATIONS = ("alloc_shared", "alloc_fragment", "alloc_ub", "alloc_L1", "alloc_L0C", "alloc_local", "alloc_var")


@dataclass(frozen=True)
class Mutant:
    """``text`` is the whole mutated file, ``name`` what was done, without a line number, ``line`` where."""

    name: str
    kind: str
    line: int
    text: str


def mutants(text: str) -> list[Mutant]:
    """All mutants of a file, each text once, in the order of the kinds and of the text."""
    file = _File(text)
    found: dict[str, Mutant] = {}
    counts: dict[str, int] = {}
    for kind, make in KINDS.items():
        for edits in make(file):
            new = file.edited(edits)
            if new == text or new in found or not (all(map(_is_expression, edits)) or _parses(new)):
                continue
            name = f"{kind}: {'; '.join(file.shown(edit) for edit in edits)}"
            counts[name] = counts.get(name, 0) + 1
            if counts[name] > 1:
                name += f" ({counts[name]})"
            found[new] = Mutant(name, kind, min(getattr(node, "lineno", 0) for node, _ in edits), new)
    return list(found.values())


def _is_expression(edit: Edit) -> bool:
    """An expression for an expression, of which nothing behind it is a part: the rest of the file parses as before."""
    node, text = edit
    return isinstance(node, (ast.Call, ast.Constant, ast.Name)) and _parses(f"({text})")


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


class _File:
    """A parsed text, and the parts of it that make kernels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.bytes = text.encode()
        starts = [0]
        for line in self.bytes.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        self.starts = starts
        functions = [n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)]
        self.bodies = [f for f in functions if any(_last(d) in ("prim_func", "macro") for d in f.decorator_list)]
        self.compiled = [f for f in functions if any("jit" in ast.unparse(d) for d in f.decorator_list)]

    def segment(self, node: ast.AST) -> tuple[int, int]:
        start = self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def source(self, node: ast.AST) -> str:
        start, end = self.segment(node)
        return self.bytes[start:end].decode()

    def edited(self, edits: list[Edit]) -> str:
        result = self.bytes
        for node, text in sorted(edits, key=lambda edit: self.segment(edit[0]), reverse=True):
            start, end = self.segment(node)
            result = result[:start] + text.encode() + result[end:]
        return result.decode()

    def shown(self, edit: Edit) -> str:
        old, new = (" ".join(part.split()) for part in (self.source(edit[0]), edit[1]))
        return f"{_short(old)} -> {_short(new)}"

    def nodes(self) -> Iterator[ast.AST]:
        """Everything in the bodies of kernels, in text order."""
        for body in self.bodies:
            found = [n for stmt in body.body for n in ast.walk(stmt) if hasattr(n, "lineno")]
            yield from sorted(found, key=lambda n: (n.lineno, n.col_offset, -n.end_lineno, -n.end_col_offset))

    def blocks(self) -> Iterator[list[ast.stmt]]:
        for body in self.bodies:
            for node in ast.walk(body):
                for field in ("body", "orelse"):
                    block = getattr(node, field, None)
                    if isinstance(block, list) and block and node is not body:
                        yield block

    def calls(self, *names: str) -> Iterator[ast.Call]:
        for node in self.nodes():
            if isinstance(node, ast.Call) and (not names or _last(node) in names):
                yield node


def _short(text: str) -> str:
    return text if len(text) <= 70 else f"{text[:50]} ... {text[-15:]}"


def _last(node: ast.AST) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_allocation(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Call) and _last(stmt.value).startswith("alloc_")


def _is_text(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)


# kinds ---------------------------------------------------------------------------------------------------------------


def dropped(file: _File) -> Iterator[list[Edit]]:
    """A statement is missing, or the condition of one."""
    for block in file.blocks():
        for stmt in block:
            if isinstance(stmt, ast.With) or _is_allocation(stmt) or _is_text(stmt):
                continue
            if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], (ast.Name, ast.Tuple)):
                continue  # a name that is missing is an error in any case
            yield [(stmt, "pass")]
            if isinstance(stmt, ast.If):
                yield [(stmt.test, "True")]


def swapped(file: _File) -> Iterator[list[Edit]]:
    """Two neighbouring statements of which one writes what the other one touches."""
    for block in file.blocks():
        for one, other in pairwise(block):
            if any(_is_allocation(s) or _is_text(s) or isinstance(s, ast.With) for s in (one, other)):
                continue
            if _writes(one) & _names(other) or _writes(other) & _names(one):
                yield [(one, file.source(other)), (other, file.source(one))]


def _names(stmt: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name)}


def _writes(stmt: ast.stmt) -> set[str]:
    """The names of what a statement writes, by the places where operators have their results."""
    found: set[str] = set()
    for node in ast.walk(stmt):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {_root(t) for t in targets}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:
            args, name = node.value.args, _last(node.value)
            place = 2 if name.startswith("gemm") else 1 if name == "copy" or name.startswith("reduce") else 0
            found |= {_root(args[min(place, len(args) - 1)])}
            if name.startswith(("cum", "atomic", "gather")) or not isinstance(node.value.func, ast.Attribute):
                found |= {_root(arg) for arg in args}
    return found - {""}


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def indices(file: _File) -> Iterator[list[Edit]]:
    """Off by one in an index, or where a slice begins."""
    for part in _subscripts(file):
        yield from _off_by_one(file, part.lower if isinstance(part, ast.Slice) else part)


def ends(file: _File) -> Iterator[list[Edit]]:
    """Off by one where a slice ends."""
    for part in _subscripts(file):
        yield from _off_by_one(file, part.upper if isinstance(part, ast.Slice) else None)


def _subscripts(file: _File) -> Iterator[ast.expr]:
    for node in file.nodes():
        if isinstance(node, ast.Subscript):
            yield from node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _off_by_one(file: _File, place: ast.expr | None) -> Iterator[list[Edit]]:
    if place is not None:
        yield [(place, f"{file.source(place)} + 1")]
        if not isinstance(place, ast.Constant):
            yield [(place, f"{file.source(place)} - 1")]


def extents(file: _File) -> Iterator[list[Edit]]:
    """Off by one in the extents of loops, of the grid and of tiles."""
    for call in file.calls(*LOOPS):
        for arg in call.args:
            yield [(arg, f"({file.source(arg)}) - 1")]
            yield [(arg, f"({file.source(arg)}) + 1")]
    for call in file.calls(*ALLOCATIONS):
        for shape in call.args[:1]:
            for extent in shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else ():
                yield [(extent, f"({file.source(extent)}) - 1")]


def init(file: _File) -> Iterator[list[Edit]]:
    """``init`` of a product, and ``clear`` of a reduction, with other values or none."""
    for call in file.calls():
        for keyword in call.keywords:
            if keyword.arg in ("init", "clear"):
                for text in ("True", "False"):
                    if file.source(keyword.value) != text:
                        yield [(keyword.value, text)]
                yield [_without(file, call, keyword)]


def _without(file: _File, call: ast.Call, keyword: ast.keyword) -> Edit:
    rest = [file.source(arg) for arg in call.args]
    rest += [file.source(k) for k in call.keywords if k is not keyword]
    return call, f"{file.source(call.func)}({', '.join(rest)})"


def launches(file: _File) -> Iterator[list[Edit]]:
    """The launch without ``is_npu``, and with another number of vector cores."""
    for call in file.calls("Kernel"):
        for keyword in call.keywords:
            yield [_without(file, call, keyword)]
            if keyword.arg == "threads":
                yield [(keyword.value, "1" if file.source(keyword.value) == "2" else "2")]


def grids(file: _File) -> Iterator[list[Edit]]:
    """Two axes of a block number in the other order."""
    for node in file.nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            sign = "%" if isinstance(node.op, ast.FloorDiv) else "//"
            yield [(node, f"({file.source(node.left)}) {sign} ({file.source(node.right)})")]


def configs(file: _File) -> Iterator[list[Edit]]:
    """A key of ``pass_configs`` that is missing or False; none at all."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None and any(name in ast.unparse(key) for name in KEYS):
                    rest = [
                        f"{file.source(k)}: {file.source(v)}"
                        for k, v in zip(node.keys, node.values, strict=True)
                        if k is not None and k is not key
                    ]
                    yield [(node, f"{{{', '.join(rest)}}}")]
                    yield [(value, "False")]
    for call in _compilations(file):
        for keyword in call.keywords:
            if keyword.arg == "pass_configs":
                yield [_without(file, call, keyword)]


def _compilations(file: _File) -> Iterator[ast.Call]:
    for function in file.compiled:
        yield from (d for d in function.decorator_list if isinstance(d, ast.Call))
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tilelang.compile":
            yield node


def returned(file: _File) -> Iterator[list[Edit]]:
    """Another ``out_idx``."""
    for call in _compilations(file):
        for keyword in call.keywords:
            if keyword.arg == "out_idx":
                yield [_without(file, call, keyword)]
                found = ast.literal_eval(keyword.value)
                listed = [found] if isinstance(found, int) else list(found)
                yield [(keyword.value, repr([n - 1 for n in listed]))]
                if len(listed) > 1:
                    yield [(keyword.value, repr(listed[::-1]))]
                    yield [(keyword.value, repr(listed[1:]))]


def types(file: _File) -> Iterator[list[Edit]]:
    """Tiles of another element type."""
    for call in file.calls(*ALLOCATIONS):
        for arg in [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "dtype")]:
            if isinstance(arg, ast.Constant) and arg.value in FLOATS:
                yield [(arg, repr(FLOATS[arg.value]))]
            elif not isinstance(arg, ast.Constant):
                for text in ("float16", "float32"):
                    yield [(arg, repr(text))]


def comparisons(file: _File) -> Iterator[list[Edit]]:
    """Another comparison."""
    for node in file.nodes():
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            for sign in COMPARISONS.get(type(node.ops[0]), ()):
                yield [(node, f"{file.source(node.left)} {sign} {file.source(node.comparators[0])}")]
        if isinstance(node, ast.Constant) and node.value in ("GT", "GE", "LT", "LE", "EQ", "NE"):
            for text in {"GT": ("GE", "LT"), "GE": ("GT", "LE"), "LT": ("LE", "GT"), "LE": ("LT", "GE")}.get(
                node.value, ("NE" if node.value == "EQ" else "EQ",)
            ):
                yield [(node, repr(text))]


def operators(file: _File) -> Iterator[list[Edit]]:
    """Another operator: ``max`` for ``min``, ``sub`` for ``add``, a reduction of another kind, operands in turn."""
    for call in file.calls():
        name = _last(call)
        if name in OPERATORS and isinstance(call.func, ast.Attribute):
            yield [(call.func, f"{file.source(call.func.value)}.{OPERATORS[name]}")]
        if name in IN_TURN and len(call.args) == 3:
            yield [(call.args[1], file.source(call.args[2])), (call.args[2], file.source(call.args[1]))]
        if name == "copy" and len(call.args) >= 2:
            yield [(call.args[0], file.source(call.args[1])), (call.args[1], file.source(call.args[0]))]
    for node in file.nodes():
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_divided(node):
            left, right = file.source(node.left), file.source(node.right)
            yield [(node, f"({left}) {ARITHMETIC[type(node.op)]} ({right})")]
        negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        if negative and not isinstance(node.operand, ast.Constant):
            yield [(node, file.source(node.operand))]


def _is_divided(node: ast.BinOp) -> bool:
    return isinstance(node.op, (ast.FloorDiv, ast.Mod))  # which are another kind


def axes(file: _File) -> Iterator[list[Edit]]:
    """Another axis of a reduction or of a broadcast, other flags of a product."""
    for call in file.calls():
        for keyword in call.keywords:
            text = file.source(keyword.value)
            if keyword.arg in ("dim", "axis"):
                yield [(keyword.value, "1" if text == "0" else "0")]
            elif keyword.arg in ("transpose_A", "transpose_B", "reverse"):
                yield [(keyword.value, "False" if text == "True" else "True")]
        if _last(call).startswith("reduce") and len(call.args) > 2:
            yield [(call.args[2], "1" if file.source(call.args[2]) == "0" else "0")]


def tails(file: _File) -> Iterator[list[Edit]]:
    """A tail that is not counted: a quotient that is cut off, a minimum that is not taken."""
    for call in file.calls("ceildiv"):
        if len(call.args) == 2:
            yield [(call, f"({file.source(call.args[0])}) // ({file.source(call.args[1])})")]
    for call in file.calls("min", "max"):
        if len(call.args) == 2:
            yield [(call, f"({file.source(call.args[0])})")]
            yield [(call, f"({file.source(call.args[1])})")]


def constants(file: _File) -> Iterator[list[Edit]]:
    """Another number where values are computed."""
    for call in file.calls():
        name = _last(call)
        if name in (*LOOPS, *ALLOCATIONS, "ceildiv", "copy"):
            continue
        for arg in call.args:
            if isinstance(arg, ast.Constant) and type(arg.value) in (int, float):
                yield [(arg, repr(arg.value + 1))]
    for node in file.nodes():
        if isinstance(node, ast.BinOp):
            for side in (node.left, node.right):
                if isinstance(side, ast.Constant) and isinstance(side.value, float):
                    yield [(side, repr(side.value + 0.5))]


KINDS: dict[str, Callable[[_File], Iterator[list[Edit]]]] = {
    "dropped": dropped,
    "swapped": swapped,
    "index": indices,
    "slice": ends,
    "extent": extents,
    "init": init,
    "launch": launches,
    "grid": grids,
    "pass_configs": configs,
    "out_idx": returned,
    "type": types,
    "comparison": comparisons,
    "operator": operators,
    "axis": axes,
    "tail": tails,
    "constant": constants,
}
