"""TL232, TL233: operators that the row split of ``threads=2`` does not know become ones that it knows.

AscendVidReduction halves the element count of the operators in its list only (``vid_aware_ops`` of the compiler
version); a cast or a broadcast outside the list would run over twice its buffer (R-OP, measured: g1_c_*).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.compiler import COMPILERS
from tl2npu.dialects.element_types import known
from tl2npu.kernel.access import accesses, reads, writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Kernel, Loop, Memory, Op, Operand, Scalar, Stmt, blocks, walk, walk_with_parents
from tl2npu.kernel.symbolic import const, product
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument, names_in

_ROUNDING = ("CAST_NONE", "CAST_RINT")
_INFIX = {"tile.add": "+", "tile.sub": "-", "tile.mul": "*", "tile.div": "/"}


def split_aware(job: Job, name: str) -> bool:
    """True if the compiler version halves this operator itself."""
    return name in COMPILERS[job.options.ascend_version].vid_aware_ops


def casts_to_copies(job: Job) -> None:
    """``T.tile.cast(dst, src, mode, count)`` of whole tiles becomes ``T.copy(src, dst)``, which casts the same way."""
    edits = Edits(job.file.index)
    seen: set[int] = set()
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.name != "tile.cast" or split_aware(job, "tile.cast"):
            continue
        dst, src = stmt.args.get("dst"), stmt.args.get("src")
        if not isinstance(dst, Operand) or not isinstance(src, Operand) or id(stmt.call) in seen:
            continue
        if not (dst.is_whole and src.is_whole) or dst.buffer.shape != src.buffer.shape or not _full(stmt, dst.buffer):
            continue
        if not _same_rounding(job, stmt, src.buffer, dst.buffer):
            continue
        spelled = job.file.names.spell("tilelang.language.copy", at=stmt.call.func)
        if spelled is None:
            continue
        seen.add(id(stmt.call))
        call = cst.parse_expression(f"{spelled}({_argument(stmt, 'src')}, {_argument(stmt, 'dst')})")
        edits.replace(stmt.call, call)
        job.change("TL232", stmt.node, "wrote `T.copy` for the cast, so that threads=2 can split it")
    job.apply(edits)


def _argument(stmt: Op, name: str) -> str:
    """The text of an argument at the call itself (a macro's own parameter name inside a macro)."""
    found = argument(stmt.call, name, [p.name for p in stmt.op.params].index(name))
    assert found is not None
    return code(found)


def _full(stmt: Op, buffer: Buffer) -> bool:
    count = stmt.args.get("count")
    if not isinstance(count, Scalar):
        return True
    return count.sym == product(buffer.shape)


_WIDTH = {"float32": 32, "float": 32, "float16": 16, "bfloat16": 16, "int32": 32, "int16": 16, "int8": 8, "uint8": 8}


def _same_rounding(job: Job, stmt: Op, src: Buffer, dst: Buffer) -> bool:
    """``T.copy`` widens with CAST_NONE and narrows with CAST_RINT (R-OP, E73)."""
    mode = stmt.args.get("mode")
    if not isinstance(mode, Scalar):
        return False
    value = job.file.evaluator.static(mode.node, stmt.env)
    if value not in _ROUNDING:
        return False
    wide, narrow = _WIDTH.get(src.dtype), _WIDTH.get(dst.dtype)
    if wide is None or narrow is None:
        return True  # the dtype is a parameter; both modes name what the hardware does for its direction
    to_int = "int" in dst.dtype and "int" not in src.dtype
    return value == "CAST_RINT" if to_int or (narrow < wide and value == "CAST_RINT") else True


def broadcasts_to_parallel(job: Job) -> None:
    """``broadcast(B, m)`` with ``op(a, a, B)`` becomes an element-wise loop in which ``m`` is a row vector."""
    while _one_broadcast(job):
        pass


def _one_broadcast(job: Job) -> bool:
    kernel = job.kernel
    for body in blocks(kernel.body):
        for stmt in body:
            if not isinstance(stmt, Op) or stmt.op.name != "tile.broadcast" or split_aware(job, "tile.broadcast"):
                continue
            if stmt.via or not _row_broadcast(stmt):
                continue
            users = _users(kernel, stmt)
            if users is None:
                _spread(job, stmt)
            else:
                _replace_broadcast(job, stmt, users)
            return True
    return False


@dataclass(frozen=True, eq=False)
class _Spread:
    """A broadcast as an element-wise loop over its tile: ``element`` of the vector goes to the tile's ``at``."""

    job: Job
    tile: Buffer
    vector: Buffer
    head: str
    at: str
    element: str

    @classmethod
    def of(cls, job: Job, stmt: Op) -> _Spread:
        """The loop for ``T.tile.broadcast`` with a vector of one value for each row."""
        pair = _pair(stmt)
        assert pair is not None
        tile, vector = (operand.buffer for operand in pair)
        i, j = Names(job).variables(("i", "h_i", "row"), ("j", "d_i", "col"), inside=[stmt.node])
        parallel = job.file.names.spell("tilelang.language.Parallel", at=stmt.call.func) or "T.Parallel"
        rows, cols = (code(node) for node in tile.shape_nodes)
        element = f"{vector.name}[{i}]" if len(vector.shape) == 1 else f"{vector.name}[{i}, 0]"
        return cls(job, tile, vector, f"for {i}, {j} in {parallel}({rows}, {cols}):", f"{i}, {j}", element)

    def write(self, edits: Edits, stmt: Op, text: str, before: str = "") -> None:
        """Put the loop with one statement in the place of another one, behind a statement ``before``."""
        line = cst.ensure_type(self.job.file.index.parent(stmt.node), cst.SimpleStatementLine)
        first = [before] if before else []
        texts = [*first, f"{self.head}\n    {text}"]
        new = [cst.parse_statement(f"{one}\n", self.job.module.config_for_parsing) for one in texts]
        edits.replace_many(line, [new[0].with_changes(leading_lines=line.leading_lines), *new[1:]])


def _spread(job: Job, stmt: Op) -> None:
    """Where not every reader can take the vector itself, an element-wise loop spreads it (facts 3, g3_bc)."""
    spread = _Spread.of(job, stmt)
    tile, vector = spread.tile, spread.vector
    edits = Edits(job.file.index)
    text = f"{tile.name}[{spread.at}] = {spread.element}"
    fill = job.file.names.spell("tilelang.language.tile.fill", at=stmt.call.func)
    if len(vector.shape) > 1 and fill is not None:  # element by element otherwise: rows of two widths are no copy
        text = f"{tile.name}[{spread.at}] = {tile.name}[{spread.at}] * {spread.element}"
        spread.write(edits, stmt, text, f"{fill}({tile.name}, 1.0)")
    else:
        spread.write(edits, stmt, text)
    job.change("TL233", stmt.node, f"wrote a loop that broadcasts `{vector.name}`, so that threads=2 can split it")
    job.apply(edits)


def _pair(stmt: Op) -> tuple[Operand, Operand] | None:
    dst, src = stmt.args.get("dst"), stmt.args.get("src")
    return (dst, src) if isinstance(dst, Operand) and isinstance(src, Operand) else None


def _row_broadcast(stmt: Op) -> bool:
    """One value per row spread along the row: ``[M, 1]`` to ``[M, N]``, or ``[M]`` with ``axis=1``."""
    pair = _pair(stmt)
    if pair is None or not all(o.is_whole for o in pair):
        return False
    dst, src = (o.buffer for o in pair)
    if len(dst.shape) != 2 or src.shape[:1] != dst.shape[:1]:
        return False
    axis = stmt.args.get("axis")
    along = axis.sym.constant if isinstance(axis, Scalar) else None
    if len(src.shape) == 1:
        return along == 1
    return len(src.shape) == 2 and src.shape[1] == const(1) and along in (None, 1)


def _users(kernel: Kernel, stmt: Op) -> list[Op] | None:
    """Every reader of the broadcast tile, if all are element-wise operators that can take the vector itself."""
    pair = _pair(stmt)
    assert pair is not None
    tile, vector = (o.buffer for o in pair)
    if _read_before(kernel, stmt, tile):
        return None
    found: list[Op] = []
    after = False
    for user in kernel.walk():
        if user is stmt:
            after = True
            continue
        touching = [a for a in accesses(user) if a.operand.buffer is tile] if after else []
        if not touching:
            continue
        if not any(a.reads for a in touching):
            break  # overwritten: the broadcast value is gone
        if not _usable(user, tile) or _is_exact_division(user, vector):
            return None
        assert isinstance(user, Op)
        found.append(user)
    if not found or not _vector_unchanged(kernel, stmt, found, vector):
        return None
    return found


def _read_before(kernel: Kernel, stmt: Op, tile: Buffer) -> bool:
    """In a loop, a read above the broadcast sees the value of the iteration before."""
    around = [p for s, parents in walk_with_parents(kernel.body) if s is stmt for p in parents if isinstance(p, Loop)]
    if not around:
        return False
    for other in walk(around[0].body):
        if other is stmt:
            return False
        touching = [a for a in accesses(other) if a.operand.buffer is tile]
        if touching:
            return any(a.reads for a in touching)
    return False


def _usable(user: Stmt, tile: Buffer) -> bool:
    if not isinstance(user, Op) or user.op.name not in _INFIX or user.via:
        return False
    operands = list(user.operands)
    if len(operands) != 3 or not all(o.is_whole for _, o in operands):
        return False
    (_, _dst), (_, left), (_, right) = operands
    commutes = user.op.name in ("tile.add", "tile.mul")
    return (right.buffer is tile and left.buffer is not tile) or (commutes and left.buffer is tile)


def _is_exact_division(user: Stmt, vector: Buffer) -> bool:
    """A division of tiles that would become a product with reciprocals rounded to the element type (TL157).

    In float32 they are off by a bit, and subnormal divisors only give infinities; a vector with one axis is spread by
    one instruction, so that nothing speaks for the reciprocals.
    """
    if not isinstance(user, Op) or user.op.name != "tile.div":
        return False
    return len(vector.shape) == 1 or known(vector.dtype) != "float32"


def _vector_unchanged(kernel: Kernel, stmt: Op, users: Sequence[Op], vector: Buffer) -> bool:
    """Every use follows the broadcast in its own list of statements, and nothing changes the vector up to the last one.

    A loop that holds a use is taken whole: what it does after the use comes before the use of its next iteration.
    """
    block = next(body for body in blocks(kernel.body) if stmt in body)
    following = block[block.index(stmt) + 1 :]
    holders = [next((i for i, item in enumerate(following) if _holds(item, user)), -1) for user in users]
    if -1 in holders:
        return False
    between = following[: max(holders) + 1]
    return not any(o.buffer is vector for item in between for s in walk([item]) if s not in users for o in writes(s))


def _holds(stmt: Stmt, inner: Stmt) -> bool:
    return any(found is inner for found in walk([stmt]))


def _replace_broadcast(job: Job, stmt: Op, users: Sequence[Op]) -> None:
    spread = _Spread.of(job, stmt)
    tile, vector = spread.tile, spread.vector
    edits = Edits(job.file.index)
    for user in users:
        (_, dst), (_, left), (_, right) = user.operands
        other = left if right.buffer is tile else right
        infix = _INFIX[user.op.name]
        text = f"{dst.buffer.name}[{spread.at}] = {other.buffer.name}[{spread.at}] {infix} {spread.element}"
        spread.write(edits, user, text)
        job.change("TL233", user.node, f"wrote an element-wise loop with the row vector `{vector.name}`")
    edits.remove(stmt.node)
    job.change("TL233", stmt.node, f"removed `{tile.name}`: threads=2 cannot split its broadcast")
    job.apply(edits)


def drop_unused_buffers(job: Job, before: set[str]) -> None:
    """Allocations that a rewrite left without any use."""
    used: set[Buffer] = set()
    for stmt in job.kernel.walk():
        used |= {access.operand.buffer for access in accesses(stmt)}
    edits = Edits(job.file.index)
    for name, buffer in job.kernel.buffers.items():
        if buffer.memory is not Memory.GM and buffer not in used and name in before and buffer.statement is not None:
            mentioned = sum(1 for n in names_in(job.located.node) if n.value == name)
            if mentioned == 1:
                edits.remove(buffer.statement)
                job.change("TL233", buffer.statement, f"removed the unused `{name}`")
    job.apply(edits)


def used_buffers(kernel: Kernel) -> set[str]:
    """Names of the buffers that statements touch."""
    return {o.buffer.name for stmt in kernel.walk() for o in (*reads(stmt), *writes(stmt))}
