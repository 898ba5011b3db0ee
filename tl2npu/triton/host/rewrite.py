"""The text of a Triton file with its kernels replaced and its launches rewritten."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TypeGuard

from tl2npu.kernel.symbolic import Opaque, Sym, Var, var
from tl2npu.source.triton_imports import REEXPORTS
from tl2npu.tile.ir import Kernel, statements, writes
from tl2npu.tile.write.integers import integer
from tl2npu.triton.host.binding import Binding
from tl2npu.triton.host.held import Unneeded
from tl2npu.triton.host.torch_names import is_float
from tl2npu.triton.host.values import Int, Unknown
from tl2npu.triton.host.wrapped import of_module
from tl2npu.triton.refused import Refused


class Spelling:
    """Writes sizes of a kernel as the host code can compute them where it launches."""

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self.host_names = {new: old for old, new in binding.names.items()}

    def size(self, name: str) -> str:
        """The text of one size. Raises ``Refused`` where the host code has no text for it any more."""
        binding = self.binding
        argument = binding.arguments.get(name)
        if argument is not None and not any(f"{part}.stride(" in argument for part in binding.loose):
            return argument
        if argument is None and name in binding.spec.numbers:  # of the configuration that autotuning begins with
            return repr(binding.spec.numbers[name])
        host = binding.site.scope
        old = self.host_names.get(name, name)
        for key, value in binding.site.env.items():
            if isinstance(value, Int) and str(value.value) == old and key.isidentifier():
                return key
        text = host.texts.get(old)
        if text is not None:
            with binding.site.there():
                again = host.eval(ast.parse(text, mode="eval").body)
                again = Int(host.name(again.text)) if isinstance(again, Unknown) else again
            if isinstance(again, Int) and str(again.value) == old:
                return text
        raise Refused("TL511", binding.site.call.lineno, f"the launch does not know `{old}` any more")

    def expression(self, value: Sym) -> str:
        """The text of an expression of sizes."""
        names: dict[str, str] = {}
        for atom in value.atoms():
            if isinstance(atom, Var):
                text = self.size(atom.name)
                names[atom.name] = (
                    text if text.replace(".", "").replace("_", "").isalnum() or _closed(text) else f"({text})"
                )
        return (
            integer(value, names)
            .replace("T.ceildiv(", "tilelang.cdiv(")
            .replace("T.min(", "min(")
            .replace("T.max(", "max(")
        )


def _closed(text: str) -> bool:
    return isinstance(
        ast.parse(text, mode="eval").body, (ast.Call, ast.Subscript, ast.Attribute, ast.Name, ast.Constant)
    )


_HOST = ("cdiv", "next_power_of_2")
_DEVICE = "runtime.driver.active.get_active_torch_device"
_CONTIGUOUS = ".is_contiguous()"
BYTES = ".view(torch.uint8)"
"""What makes bytes of a tensor of bool, in the same memory."""


@dataclass(frozen=True)
class Launched:
    """A launch with the kernel that it becomes."""

    binding: Binding
    kernel: Kernel
    checks: tuple[str, ...]
    one_row: str
    """Why each block computes one row, where that is worth a note."""


def checks(binding: Binding, kernel: Kernel) -> tuple[str, ...]:
    """What the host code must check before the launch: contiguity, sizes that are equal, sizes that divide others."""
    _contradictions(binding)
    spelling = Spelling(binding)
    loose, dims = [], []
    for param in kernel.params:
        tensor = binding.tensors.get(param.name)
        text = binding.arguments[param.name]
        if (tensor is None or not tensor.fresh) and text not in loose and text not in binding.loose:
            loose.append(text)
        if tensor is not None and tensor.guessed and tensor.shape is not None:
            dims.append(f"{_atom(text)}.dim() == {len(tensor.shape)}")
    found = [" and ".join(f"{_atom(text)}.is_contiguous()" for text in loose)] if loose else []
    found += dims
    for one, other in binding.spec.equal:
        left, right = spelling.expression(one), spelling.expression(other)
        found += [f"{left} == {right}"] if left != right else []
    for name, size in binding.spec.divides:
        left, right = _factor(spelling.expression(name)), _factor(spelling.expression(size))
        known = left.isdecimal() and right.isdecimal() and int(left) % int(right) == 0
        text = f"{left} % {right} == 0"
        if not known and text not in found:
            found.append(text)
    found += [f"0 < {spelling.expression(n)} <= {spelling.expression(most)}" for n, most in binding.spec.within]
    sizes = {name for name in kernel.sizes if name in binding.spec.least}
    found += [f"{spelling.expression(var(name))} >= {binding.spec.least[name]}" for name in sorted(sizes)]
    found += sorted(f"{spelling.expression(value)} < 2**31" for value in binding.spec.narrow)
    found += sorted(binding.absent)
    return tuple(dict.fromkeys(found))


def asserted(check: str) -> str:
    """A check as a statement, whose message names the tensors or has the values: numbers, types, never elements."""
    body = ast.parse(check, mode="eval").body
    parts = body.values if isinstance(body, ast.BoolOp) else [body]
    tensors = [ast.unparse(part).removesuffix(_CONTIGUOUS) for part in parts]
    if check.count(_CONTIGUOUS) == len(parts):
        return f"assert {check}, {json.dumps(', '.join(tensors) + ' must be contiguous')}"
    sides = [side for part in parts if isinstance(part, ast.Compare) for side in (part.left, *part.comparators)]
    if any(isinstance(side, ast.Constant) and side.value is None for side in sides):
        return f"assert {check}"
    sides = [it for side in sides for it in ((side.left, side.right) if _is_remainder(side) else (side,))]
    texts = dict.fromkeys(ast.unparse(side) for side in sides if not isinstance(side, ast.Constant))
    if not texts or any(mark in text for text in texts for mark in "\"'{}\\"):
        return f"assert {check}"
    values = ", ".join(f"{{{text}=}}" for text in texts)
    return f'assert {check}, f"{values}"'


def _is_remainder(node: ast.expr) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)


def _contradictions(binding: Binding) -> None:
    """Refuse where a call in the file passes sizes that a check would stop."""
    spec = binding.spec
    for code, pairs in (("TL522", spec.equal), ("TL520", spec.divides)):
        for one, other in pairs:
            for left, right in spec.relations(one, other):
                if left != right if code == "TL522" else right and left % right:
                    relation = f"`{one} == {other}`" if code == "TL522" else f"`{one} % {other} == 0`"
                    text = f"{relation} must hold, and a call in the file passes {left} and {right}"
                    raise Refused(code, binding.site.call.lineno, text)


def without_blocks(launched: Launched) -> str | None:
    """The condition for a launch to have any block, where a call in the file gives it none.

    Triton launches nothing then; TileLang has no tensors without elements.
    """
    binding = launched.binding
    for extent in launched.kernel.launch.grid:
        sizes = [atom.args[0] for atom in extent.atoms() if isinstance(atom, Opaque) and atom.head == "cdiv"]
        for size in (extent, *sizes):
            if any(size.substitute(values).constant == 0 for values in binding.spec.calls):
                return f"{Spelling(binding).expression(size)} > 0"
    return None


def call(launched: Launched) -> str:
    """The call that takes the place of ``kernel[grid](...)``."""
    binding, kernel = launched.binding, launched.kernel
    spelling = Spelling(binding)
    tuned = set(defaults(binding, kernel)) - set(binding.arguments)
    sizes = [f"{name}={spelling.size(name)}" for name in kernel.sizes if name not in tuned]
    tensors = []
    copied = copies(launched)
    for param in kernel.params:
        text = binding.arguments[param.name]
        tensor = binding.tensors.get(param.name)
        shape = None if tensor is None or tensor.shape is None else binding.spec.tensors[param.name].shape
        if text in binding.loose:
            text = copied.get(text, f"{text}.contiguous()")
        if binding.spec.tensors[param.name].dtype == "bool":
            text = f"{_atom(text)}{BYTES}"
        if param.name in binding.spec.flat:
            tensors.append(f"{_atom(text)}.view(-1)")
            continue
        if shape == param.shape:
            tensors.append(text)
            continue
        extents = [spelling.expression(extent) for extent in param.shape]
        if param.name in binding.spec.least_rows:  # what lies behind the last row stays out
            tensors.append(f"{_atom(text)}.view({', '.join(['-1', *extents[1:]])})[: {extents[0]}]")
        else:
            tensors.append(f"{_atom(text)}.view({', '.join(extents)})")
    scalars = [_float(binding.arguments[name]) for name in kernel.scalars]
    return f"{kernel.name}({', '.join(sizes)})({', '.join((*tensors, *scalars))})"


def _float(text: str) -> str:
    """A number as the runtime passes one: it takes an ``int`` for an address or a whole number, whatever the parameter
    is (``cython_wrapper.pyx`` at 95acbd7f)."""
    return text if is_float(ast.parse(text, mode="eval").body) else f"float({text})"


def copies(launched: Launched) -> dict[str, str]:
    """Tensors that are not contiguous and that the kernel writes; they are copied back: name -> name of the copy."""
    binding, kernel = launched.binding, launched.kernel
    written = {name for stmt in statements(kernel.body) for name in writes(stmt)}
    texts = [binding.arguments[param.name] for param in kernel.params if param.name in written]
    function = binding.site.function
    taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} if function is not None else set()
    found: dict[str, str] = {}
    for text in texts:
        if text in binding.loose:
            name = f"{text}_contiguous"
            while name in taken:
                name += "_"
            found[text] = name
    return found


def defaults(binding: Binding, kernel: Kernel) -> dict[str, int | float]:
    """The numbers that the launch passes for sizes and scalars."""
    numbers = binding.spec.numbers
    return {name: number for name in kernel.sizes if isinstance(number := numbers.get(name), (int, float))}


def _atom(text: str) -> str:
    node = ast.parse(text, mode="eval").body
    closed = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return text if closed else f"({text})"


def _factor(text: str) -> str:
    node = ast.parse(text, mode="eval").body
    return f"({text})" if isinstance(node, ast.BinOp) else text


@dataclass(frozen=True)
class Splice:
    """Lines ``first`` to ``last`` of the input, counted from 1, become ``text``; ``columns``: only a part of them."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def without(text: str, found: Sequence[Unneeded]) -> list[Splice]:
    """Take statements out, with the comments right above them and the blank lines between them."""
    lines = text.splitlines()
    splices: list[Splice] = []
    runs: list[tuple[int, int]] = []
    for item in sorted(found, key=lambda item: item.stmt.lineno):
        stmt = item.stmt
        first, last = stmt.lineno, stmt.end_lineno or stmt.lineno
        start, end = stmt.col_offset, stmt.end_col_offset or 0
        before = lines[first - 1].encode()[:start].decode()
        behind = lines[last - 1].encode()[end:].decode().strip()
        if before.strip() or (behind and not behind.startswith("#")):
            splices.append(Splice((first, start), (last, end), "pass"))
            continue
        while first > 1 and lines[first - 2].lstrip().startswith("#"):
            first -= 1
        if item.last:
            splices.append(Splice((first, 0), (last + 1, 0), f"{before}pass\n"))
        elif runs and not any(line.strip() for line in lines[runs[-1][1] : first - 1]):
            runs[-1] = (runs[-1][0], last)
        else:
            runs.append((first, last))
    for first, last in runs:
        last += first > 1 and not lines[first - 2].strip() and last < len(lines) and not lines[last].strip()
        splices.append(Splice((first, 0), (last + 1, 0), ""))
    return splices


def spliced(text: str, splices: list[Splice]) -> str:
    """The text with parts replaced; places are lines from 1 and columns in UTF-8 bytes, as ``ast`` gives them."""
    lines = text.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    data = text.encode()
    for item in sorted(splices, key=lambda item: item.start, reverse=True):
        first = starts[item.start[0] - 1] + item.start[1]
        last = starts[item.end[0] - 1] + item.end[1] if item.end[0] <= len(lines) else len(data)
        data = data[:first] + item.text.encode() + data[last:]
    return data.decode()


def with_imports(text: str, alias: str, device: Set[str] = frozenset()) -> str:
    """TileLang's imports in, its language as ``alias``; Triton's out unless something still needs them.

    ``device``: names that the kernels read, whose imports go in the same way.

    ``triton.cdiv`` and its like become TileLang's.
    """
    tree = ast.parse(text)
    splices: list[Splice] = []
    names = [
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module in REEXPORTS)
        for alias in node.names
        if alias.name == "triton"
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _HOST and isinstance(node.value, ast.Name):
            name = node.value
            if name.id in names:
                place = name.lineno, name.col_offset
                splices.append(Splice(place, (name.lineno, name.end_col_offset or 0), "tilelang"))
        if isinstance(node, ast.Call) and ast.unparse(node) in {f"{name}.{_DEVICE}()" for name in names}:
            end = node.end_lineno or node.lineno, node.end_col_offset or 0
            splices.append(Splice((node.lineno, node.col_offset), end, 'torch.device("npu")'))
    text = spliced(text, splices)
    tree = ast.parse(text)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    out: list[Splice] = []
    first: ast.stmt | None = None
    stmts = tree.body if any(map(_triton_names, tree.body)) else list(of_module(tree.body))
    blocks = (getattr(node, field, None) or [None] for node in stmts for field in ("body", "orelse", "finalbody"))
    alone = [block[-1] for block in blocks if all(item and _triton_names(item) for item in block)]
    for node in stmts:
        margin = " " * node.col_offset
        bound = _triton_names(node)
        if bound is None and isinstance(node, ast.ImportFrom):
            kept = [item for item in node.names if (item.asname or item.name) not in device - used]
            if len(kept) < len(node.names):
                rest = f"{margin}{ast.unparse(ast.ImportFrom(node.module, kept, node.level))}\n" if kept else ""
                out.append(Splice((node.lineno, 0), ((node.end_lineno or node.lineno) + 1, 0), rest))
        if bound is None:
            continue
        first = node if first is None else first
        if not bound & used:
            left = f"{margin}pass\n" if node in alone and node is not first else ""
            out.append(Splice((node.lineno, 0), ((node.end_lineno or node.lineno) + 1, 0), left))
        elif isinstance(node, ast.ImportFrom) and all(alias.name in _HOST for alias in node.names):
            place = node.lineno, node.col_offset + len("from ")
            out.append(Splice(place, (place[0], place[1] + len("triton")), "tilelang"))
    new = f"import tilelang\nimport tilelang.language as {alias}\n"
    imported = {name.asname or name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}
    if (BYTES in text or 'torch.device("npu")' in text) and "torch" not in imported:
        new = f"import torch\n{new}"
    if first is None:
        return re.sub(r"\n{4,}", "\n\n\n", new + text)
    top = (first.lineno, 0)
    new = textwrap.indent(new, " " * first.col_offset)
    return re.sub(r"\n{4,}", "\n\n\n", spliced(text, [*out, Splice(top, top, new)]))


def _triton_names(node: ast.stmt) -> set[str] | None:
    """The names that an import from Triton binds; None for other statements, and those that bind more."""
    if isinstance(node, ast.Import):
        if all(alias.name.split(".")[0] == "triton" for alias in node.names):
            return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    elif isinstance(node, ast.ImportFrom) and not node.level:
        known = REEXPORTS.get(node.module or "", {})
        if (node.module or "").split(".")[0] == "triton" or all(alias.name in known for alias in node.names):
            return {alias.asname or alias.name for alias in node.names}
    return None
