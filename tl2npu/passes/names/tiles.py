"""Names of tiles that passes added for values in between: from what such a tile holds, where it is one thing.

``x_tmp_3`` says that passes needed tiles. ``x_f32``, ``scores_exp`` and ``acc_scaled`` say what stands in them. A tile
that is used again for something else keeps its name: a word would be false half of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import libcst as cst

from tl2npu.dialects.functions import FUNCTIONS
from tl2npu.kernel import element_types
from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Alloc, Buffer, Copy, Memory, Op, Scalar, Stmt, Store
from tl2npu.kernel.numbers import value_of
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import NUMBER, Names
from tl2npu.source.edits import Edits
from tl2npu.source.signs import sign_of
from tl2npu.source.tree import names_in

LONGEST = 24
"""Characters of a name."""

_BETWEEN = re.compile(r"_tmp(_\d+)?$")
_PLACE = re.compile(r"(?<=.)_(shared|smem|sh|sram|fragment|frag|local|reg|regs|ub|buf|buffer|tile)$")
_KIND = re.compile(r"(?<=.)_(half|bf16|f32|[iu]\d+|cast)$")
_CONSTANTS = {0.0: "zeros", 1.0: "ones"}
_ARITHMETIC = {
    "+": ("plus", "shifted", "total"),
    "-": ("minus", "shifted", "difference"),
    "*": ("times", "scaled", "product"),
    "/": ("over", "scaled", "ratio"),
}
"""What is said of two tiles, of one and a number, and of anything else."""
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def say_what_they_hold(job: Job, authors: frozenset[str]) -> None:
    """Rename tiles that are not the author's, where all that they ever hold has one name."""
    tiles = [item.buffer for item in job.kernel.walk() if isinstance(item, Alloc) and item.buffer.name not in authors]
    tiles = [tile for tile in tiles if _BETWEEN.search(tile.name) or len(tile.name) > LONGEST]
    if not tiles:
        return
    names, new = Names(job), {tile.name: tile.name for tile in tiles}
    users = _users(job, tiles)
    for tile in tiles:
        words = {_word(tile, stmts) for stmts in _lives(tile, users[tile])}
        found = words.pop() if len(words) == 1 else None
        if found is not None or len(tile.name) > LONGEST:
            source, word = found or (tile, "tmp")
            stem = _stem(source, new)
            new[tile.name] = names.fresh(*(_short(part, word) for part in (_PLACE.sub("", stem), stem)))
    _rename(job, new)


def number_again(job: Job) -> None:
    """The tiles of passes that have a number get the lowest ones, where others are gone by now."""
    names, new = Names(job), {}
    for tile in (item.buffer for item in job.kernel.walk() if isinstance(item, Alloc)):
        if tile.node not in job.original and NUMBER.search(tile.name):
            new[tile.name] = names.lower(tile.name, NUMBER.sub("", tile.name))
    _rename(job, new)


def _rename(job: Job, new: Mapping[str, str]) -> None:
    edits = Edits(job.file.index)
    for node in names_in(job.located.node):
        if (name := new.get(node.value, node.value)) != node.value:
            edits.replace(node, node.with_changes(value=name))
    job.renamed |= {name: job.renamed.get(old, old) for old, name in new.items()}
    job.apply(edits)


def _users(job: Job, tiles: Iterable[Buffer]) -> dict[Buffer, list[Stmt]]:
    found: dict[Buffer, list[Stmt]] = {tile: [] for tile in tiles}
    for stmt in job.kernel.walk():
        for tile in {access.operand.buffer for access in accesses(stmt)} & found.keys():
            found[tile].append(stmt)
    return found


def _lives(tile: Buffer, stmts: list[Stmt]) -> Iterator[list[Stmt]]:
    """What is done with a tile between two statements that overwrite all that it holds."""
    life: list[Stmt] = []
    for stmt in stmts:
        if _overwrites(stmt, tile) and any(not _is_fill(other) for other in life):
            yield life
            life = []
        life.append(stmt)
    yield life


def _overwrites(stmt: Stmt, tile: Buffer) -> bool:
    own = [access for access in accesses(stmt) if access.operand.buffer is tile]
    return any(access.writes for access in own) and not any(access.reads for access in own)


def _is_fill(stmt: Stmt) -> bool:
    return isinstance(stmt, Op) and stmt.op.name == "tile.fill"


def _word(tile: Buffer, life: list[Stmt]) -> tuple[Buffer | str, str] | None:
    """What a tile holds in one life: of which buffer, and what of it; or a name and nothing."""
    for stmt in life:
        if isinstance(stmt, Copy) and stmt.dst.buffer is tile and _converts(stmt, tile):
            return stmt.src.buffer, element_types.word(tile.dtype)
    for stmt in life:
        if isinstance(stmt, Copy) and stmt.src.buffer is tile and _converts(stmt, tile):
            return stmt.dst.buffer, element_types.word(tile.dtype)
    changes = [stmt for stmt in life if not _is_fill(stmt) and _writes(stmt, tile)]
    if not changes:
        return next((_filled(stmt) for stmt in life if _is_fill(stmt)), None)
    found = _computed(changes[-1], tile) if changes else None
    if found is None or len(changes) == 1:
        return found
    return found if found[0] is tile and found[1] in FUNCTIONS else None


def _converts(copy: Copy, tile: Buffer) -> bool:
    other = copy.src.buffer if copy.dst.buffer is tile else copy.dst.buffer
    return other.memory is Memory.UB and element_types.plain(other.dtype) != element_types.plain(tile.dtype)


def _writes(stmt: Stmt, tile: Buffer) -> bool:
    return any(access.writes and access.operand.buffer is tile for access in accesses(stmt))


def _computed(stmt: Stmt, tile: Buffer) -> tuple[Buffer, str] | None:
    """``x``, ``exp`` for what computes ``exp(x)``; of several operands the first counts."""
    if isinstance(stmt, Op):
        read = [access.operand.buffer for access in accesses(stmt) if access.reads and not access.element]
        kind, _, name = stmt.op.name.rpartition(".")
        if not read or (kind and kind != "tile") or name.startswith("gemm"):
            return None
        if name in _SIGNS:
            return read[0], _arithmetic(_SIGNS[name], read[1] if len(read) > 1 else None)
        words = {"cast": element_types.word(tile.dtype), "select": "selected"}
        return read[name == "select" and len(read) > 1], words.get(name, name.removeprefix("reduce_"))
    if not isinstance(stmt, Store) or not stmt.value.loads:
        return None
    node, (first, *others) = stmt.value.node, stmt.value.loads
    if node is first.node:
        return (first.buffer, "broadcast") if len(first.dims or ()) < len(stmt.target.dims or ()) else None
    if isinstance(node, cst.BinaryOperation) and (sign := sign_of(node.operator)) in _ARITHMETIC:
        alone = node.left is first.node and [other.node for other in others] in ([], [node.right])
        other = others[0].buffer if others else None
        return first.buffer, _arithmetic(sign, other) if alone else _ARITHMETIC[sign][2]
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not others:
        return first.buffer, node.func.attr.value
    return None


def _arithmetic(sign: str, other: Buffer | None) -> str:
    both, one, rest = _ARITHMETIC[sign]
    if other is None or _BETWEEN.search(other.name):
        return one if other is None else rest
    return f"{both}_{_PLACE.sub('', other.name)}"


def _filled(stmt: Stmt) -> tuple[str, str] | None:
    """``zeros``, ``ones``, or of what name all elements have the value."""
    value = stmt.args.get("value") if isinstance(stmt, Op) else None
    if not isinstance(value, Scalar):
        return None
    if isinstance(value.node, cst.Name):
        return value.node.value, "tile"
    number = value_of(value.node)
    return None if number is None or number not in _CONSTANTS else (_CONSTANTS[number], "")


def _stem(source: Buffer | str, new: dict[str, str]) -> str:
    """The name of what a tile was made from, without what another tile was made for."""
    if isinstance(source, str):
        return source
    name = new.get(source.name, source.name)
    return _BETWEEN.sub("", _KIND.sub("", name) if name in new.values() else name)


def _short(stem: str, word: str) -> str:
    """The two as a name; words of the stem go from its end as long as it is too long."""
    if not word:
        return stem
    while len(stem) + len(word) + 1 > LONGEST and "_" in stem.strip("_"):
        stem = stem.rpartition("_")[0]
    name = f"{stem}_{word}"
    return name if len(name) <= LONGEST else name[: LONGEST + 1].rpartition("_")[0] or name[:LONGEST]
