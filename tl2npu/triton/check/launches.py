"""TL506, TL801, TL817 of Triton kernels: programs with one row, tiles beyond UB, launches with too many programs.

Sources: triton-lang/triton-ascend#302 (a tile is held twice by default: ``multibuffer``; 192 KB are 1,572,864 bits),
vllm-project/vllm-ascend#10138 and #6301 (65,535 programs, ``TRITON_ALL_BLOCKS_PARALLEL=1``).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tl2npu.codes import finding
from tl2npu.devices import DEFAULT_DEVICE, DEVICES, MOST_BLOCKS
from tl2npu.kernel.ranges.numbers import number_of
from tl2npu.kernel.symbolic import product
from tl2npu.options import Options
from tl2npu.results import Diagnostic
from tl2npu.triton.check.names import Names
from tl2npu.triton.host.binding import Binding, bind
from tl2npu.triton.host.decorators import tuning
from tl2npu.triton.host.source import TritonFile
from tl2npu.triton.read.values import Tile
from tl2npu.triton.refused import Refused, Undecided

_MOST = 8
"""Configurations of ``autotune`` that are looked at."""


def check(file: TritonFile, name: str, options: Options) -> Iterator[Diagnostic]:
    """Findings about the launches of a kernel, each once."""
    worst: dict[tuple[str, int], Diagnostic] = {}
    for binding in _bindings(file, name):
        for found in (*_programs(binding, name), *_tiles(file, binding, name, options)):
            known = worst.setdefault((found.code, found.line), found)
            if known.severity != "error":
                worst[found.code, found.line] = found
    yield from worst.values()
    if _takes_a_row(file, file.kernels[name]):
        text = "each program computes one row: a short vector, and an NPU has tens of cores"
        yield replace(
            finding("TL506", file.kernels[name].lineno, text, name),
            help="give each program several rows, or as many programs as there are cores a loop over the rows",
        )


def _bindings(file: TritonFile, name: str) -> Iterator[Binding]:
    """Each launch that can be followed, with each configuration."""
    node = file.kernels[name]
    for site in file.launches:
        if site.kernel != name:
            continue
        number, many = 0, 1
        while number < min(many, _MOST):
            try:
                tuned = tuning(node, file.scope, number, path=file.path)
                many = tuned.many
                yield bind(site, node, file.source, tuned)
            except (Refused, Undecided):
                pass
            number += 1


def _programs(binding: Binding, name: str) -> Iterator[Diagnostic]:
    total = product(binding.spec.grid)
    counts = [number_of(total, known) for known in _known(binding)]
    most = max((count for count in counts if count is not None), default=0)
    if most > MOST_BLOCKS:
        text = f"{most:,} programs: a launch of more than {MOST_BLOCKS:,} fails"
        found = finding("TL817", binding.site.call.lineno, text, name)
        yield replace(found, help="launch as many programs as cores, or set TRITON_ALL_BLOCKS_PARALLEL=1")


def _known(binding: Binding) -> Iterator[dict[str, int]]:
    """The sizes that the file shows, for each call of the launching function."""
    numbers = {name: number for name, number in binding.spec.numbers.items() if isinstance(number, int)}
    yield numbers
    for call in binding.spec.calls:
        yield {**numbers, **call}


def _tiles(file: TritonFile, binding: Binding, name: str, options: Options) -> Iterator[Diagnostic]:
    """Tiles that a load fills, of which one alone is too large; what only a product reads lies elsewhere."""
    limit = DEVICES.get(options.device, DEFAULT_DEVICE).hardware.ub
    found = [tile for known in _known(binding) for tile in Shapes(file, binding, known).loaded()]
    for line, text, shape, size in sorted(found, key=lambda tile: -math.prod(tile[2]) * tile[3]):
        need = math.prod(shape) * size
        if need * 2 <= limit:
            continue
        said = f"UB holds {limit:,} bytes, `{text}` needs {need:,}"
        if need <= limit:
            said += f" twice, as `multibuffer` is on: {2 * need:,}"
        note = finding("TL801", line, said, name)
        severity = note.severity if need > limit else "warning"
        yield replace(note, severity=severity, help="use a smaller block, or loop over parts of it")


def _takes_a_row(file: TritonFile, node: ast.FunctionDef) -> bool:
    """Whether the kernel has vectors only, and its number times a stride is where its vector starts."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    names = [ast.unparse(call.func).rpartition(".")[2] for call in calls]
    if names.count("program_id") != 1 or "arange" not in names or {"dot", "make_block_ptr", "num_programs"} & {*names}:
        return False
    if any(isinstance(part, ast.Subscript) and "None" in ast.unparse(part.slice) for part in ast.walk(node)):
        return False
    sizes = {ast.unparse(c.args[1]) for c, n in zip(calls, names, strict=True) if n == "arange" and len(c.args) > 1}
    pid = next(
        (
            part.targets[0].id
            for part in ast.walk(node)
            if isinstance(part, ast.Assign)
            and isinstance(part.targets[0], ast.Name)
            and isinstance(part.value, ast.Call)
            and ast.unparse(part.value.func).endswith("program_id")
        ),
        None,
    )
    factors = []
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
            sides = [ast.unparse(part.left), ast.unparse(part.right)]
            if pid in sides:
                factors.append(sides[1 - sides.index(pid)])
    return bool(factors) and not sizes & {*factors}


# The sizes of the tiles that a Triton kernel loads, where the launch says them; ``None`` for what is not known.

Shape = tuple[int, ...]

_BYTES = {"float32": 4, "int32": 4, "uint32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2}
_BYTES |= {"int8": 1, "uint8": 1, "bool": 1, "int64": 8, "uint64": 8, "float64": 8}


class Shapes:
    """The tiles of one launch; ``known``: its sizes, as far as the file shows them."""

    def __init__(self, file: TritonFile, binding: Binding, known: Mapping[str, int]) -> None:
        self.node, self.spec = binding.spec.function, binding.spec
        self.names = Names(file, self.node)
        self.known = known
        self.depth = 0

    def loaded(self) -> Iterator[tuple[int, str, Shape, int]]:
        """Line, name or text, shape and bytes of an element of every tile that a load fills for the vector cores."""
        for part in ast.walk(self.node):
            target, value = "", part
            if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                target, value = part.targets[0].id, part.value
            if not isinstance(value, ast.Call) or self.names.function(value.func) != "load" or not value.args:
                continue
            if target and self._only_multiplied(target):
                continue
            size = _BYTES.get(self._type(value.args[0]))
            shape = self.shape(value.args[0])
            if shape is not None and size is not None and target:
                yield value.lineno, target, shape, size

    def _type(self, pointer: ast.expr) -> str:
        tensor = self.spec.tensors.get(self.names.root(pointer))
        return tensor.dtype if tensor is not None else ""

    def _only_multiplied(self, name: str) -> bool:
        """Whether a tile is read by ``tl.dot`` alone: then it lies in the memory of the cube core."""
        factors = {
            id(arg)
            for call in ast.walk(self.node)
            if isinstance(call, ast.Call) and self.names.function(call.func) == "dot"
            for arg in call.args[:2]
        }
        uses = [n for n in ast.walk(self.node) if isinstance(n, ast.Name) and n.id == name and type(n.ctx) is ast.Load]
        return bool(uses) and all(id(use) in factors for use in uses)

    def number(self, node: ast.expr) -> int | None:
        """An integer that the launch decides."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            value = self.spec.values.get(node.id)
            if isinstance(value, Tile) and value.integer is not None:
                return number_of(value.integer, self.known)
            written = self.names.values.get(node.id)
            return self.number(written) if written is not None and written is not node else None
        if isinstance(node, ast.BinOp):
            left, right = self.number(node.left), self.number(node.right)
            if left is None or right is None:
                return None
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.FloorDiv) and right:
                return left // right
            if isinstance(node.op, (ast.Add, ast.Sub)):
                return left + right if isinstance(node.op, ast.Add) else left - right
        return None

    def shape(self, node: ast.expr) -> Shape | None:
        """The shape of a value; empty for a single one."""
        self.depth += 1
        try:
            return None if self.depth > 60 else self._shape(node)
        finally:
            self.depth -= 1

    def _shape(self, node: ast.expr) -> Shape | None:
        if isinstance(node, ast.Constant):
            return ()
        if isinstance(node, ast.Name):
            if node.id in self.spec.values or node.id in self.spec.tensors:
                return ()
            value = self.names.values.get(node.id)
            return None if value is None else self.shape(value)
        if isinstance(node, ast.BinOp):
            return _joined(self.shape(node.left), self.shape(node.right))
        if isinstance(node, ast.Compare):
            return _joined(self.shape(node.left), self.shape(node.comparators[0]))
        if isinstance(node, ast.UnaryOp):
            return self.shape(node.operand)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        return self._call(node) if isinstance(node, ast.Call) else None

    def _subscript(self, node: ast.Subscript) -> Shape | None:
        rest = list(self.shape(node.value) or ())
        found: list[int] = []
        for index in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(index, ast.Constant) and index.value is None:
                found.append(1)
            elif isinstance(index, ast.Slice) and rest:
                found.append(rest.pop(0))
            else:
                return None
        return None if rest or not found else tuple(found)

    def _call(self, node: ast.Call) -> Shape | None:
        function = self.names.function(node.func)
        if function == "arange" and len(node.args) == 2:
            start, stop = self.number(node.args[0]), self.number(node.args[1])
            return None if start is None or stop is None else (stop - start,)
        if function in ("zeros", "full") and node.args and isinstance(node.args[0], (ast.Tuple, ast.List)):
            sizes = [self.number(size) for size in node.args[0].elts]
            known = [size for size in sizes if size is not None]
            return tuple(known) if len(known) == len(sizes) else None
        if function in ("program_id", "num_programs", "cdiv"):
            return ()
        if function == "load" and node.args:
            return self.shape(node.args[0])
        if function in ("where", "maximum", "minimum", "exp", "max_contiguous", "multiple_of"):
            found: Shape | None = ()
            for arg in node.args if function in ("where", "maximum", "minimum") else node.args[:1]:
                found = _joined(found, self.shape(arg))
            return found
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self.shape(node.func.value)
        return None


def _joined(one: Shape | None, other: Shape | None) -> Shape | None:
    """The shape of an operation on two values."""
    if one is None or other is None:
        return None
    one = (1,) * (len(other) - len(one)) + one
    other = (1,) * (len(one) - len(other)) + other
    return tuple(max(a, b) for a, b in zip(one, other, strict=True))
