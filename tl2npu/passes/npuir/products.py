"""TL404, TL405: the keywords of ``T.gemm``, and products that start with ``initC`` in place of ``T.clear``.

``T.gemm`` adds to its product as on a GPU. What clears it before goes only where the first ``T.gemm`` behind it
certainly runs and nothing else touches the product in between; elsewhere ``T.clear`` is right and stays.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.memory.chains import Chain, Chains
from tl2npu.kernel.memory.roles import sites, uses
from tl2npu.kernel.model import Branch, Op
from tl2npu.kernel.ranges.trip_count import TripCounts
from tl2npu.passes.host.pass_configs import with_argument
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Plan

_KEYWORDS = {"transpose_A": "a_transpose", "transpose_B": "b_transpose", "clear_accum": "initC"}
_OPERANDS = 3
_ORDER = ("transpose_A", "transpose_B")
"""The parameters that may be given by position behind the operands."""


def initialise(job: Job) -> None:
    """Rename the keywords, and let ``initC`` clear products."""
    started = {id(chain.gemms[0]): chain for chain in _started(job)}
    plan = Plan(job)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.name != "gemm":
            continue
        call = _renamed(job, stmt)
        chain = started.get(id(stmt))
        if chain is not None and chain.zero is not None:
            call = with_argument(call, f"initC={chain.init}")
            plan.remove(chain.zero.node)
            job.change("TL405", stmt.node, f"`initC={chain.init}` clears `{chain.buffer.name}`")
        if call is not stmt.call:
            plan.replace(stmt.node, [cst.SimpleStatementLine([cst.Expr(call)])])
    plan.apply()


def _started(job: Job) -> list[Chain]:
    """The sums that a fill with zeros starts, in the same list of statements or before the loops around them."""
    kernel = job.kernel
    places = sites(kernel)
    chains = Chains(kernel, places, TripCounts(kernel, job.file.evaluator), frozenset())
    found: list[Chain] = []
    for buffer, use in uses(kernel).items():
        if not use.product or not buffer.is_tile:
            continue
        try:
            of_buffer = chains.of(buffer, use)
        except Blocked:
            continue  # what it starts with is told elsewhere; it stays what it was
        found += [
            chain
            for chain in of_buffer
            if chain.zero is not None and not chain.added and _plain(chain, places[id(chain.zero)].parent)
        ]
    return found


def _plain(chain: Chain, around: object) -> bool:
    """The fill stands by itself, not under a condition; no gemm says itself how it starts."""
    return not isinstance(around, Branch) and "clear_accum" not in chain.gemms[0].args


def _renamed(job: Job, stmt: Op) -> cst.Call:
    args: list[cst.Arg] = []
    call = stmt.call
    for place, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else ""
        if arg.star:
            raise Blocked("TL404", arg, "cannot read the arguments of this `T.gemm`")
        if arg.keyword is None and place >= _OPERANDS:
            if place - _OPERANDS >= len(_ORDER):
                raise Blocked("TL404", arg, "this `T.gemm` has too many positional arguments")
            name = _ORDER[place - _OPERANDS]
        new = _KEYWORDS.get(name)
        if new is None:
            args.append(arg)
            continue
        job.change("TL404", stmt.node, f"`{name}` -> `{new}`")
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        args.append(arg.with_changes(keyword=cst.Name(new), equal=arg.equal if arg.keyword is not None else equal))
    if all(new is old for new, old in zip(args, call.args, strict=True)):
        return call
    return call.with_changes(args=args)
