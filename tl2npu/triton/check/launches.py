"""TL506, TL801, TL817 of Triton kernels: programs with one row, tiles beyond UB, launches with too many programs.

Sources: triton-lang/triton-ascend#302 (a tile is held twice by default: ``multibuffer``; 192 KB are 1,572,864 bits),
vllm-project/vllm-ascend#10138 and #6301 (65,535 programs, ``TRITON_ALL_BLOCKS_PARALLEL=1``).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import replace

from tl2npu.devices import DEFAULT_DEVICE, DEVICES, MOST_BLOCKS
from tl2npu.kernel.symbolic import product
from tl2npu.options import Options
from tl2npu.results import Diagnostic
from tl2npu.triton.check.shapes import Shapes
from tl2npu.triton.host.binding import Binding, bind
from tl2npu.triton.host.decorators import tuning
from tl2npu.triton.host.source import TritonFile
from tl2npu.triton.migrate import diagnostic
from tl2npu.triton.read.ranges import evaluated
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
            diagnostic("TL506", file.kernels[name].lineno, text, name),
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
    counts = [evaluated(total, known) for known in _known(binding)]
    most = max((count for count in counts if count is not None), default=0)
    if most > MOST_BLOCKS:
        text = f"{most:,} programs: a launch of more than {MOST_BLOCKS:,} fails"
        found = diagnostic("TL817", binding.site.call.lineno, text, name)
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
        note = diagnostic("TL801", line, said, name)
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

