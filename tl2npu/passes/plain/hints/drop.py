"""TL115, TL116: hints for the GPU compiler.

They say how to place data in banks, registers and caches of a GPU, and change no result. The exceptions are refused: a
layout of a global tensor is part of what host code and other kernels see, a safe value other than 0 is data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from tl2npu.dialects.gpu import OLDER
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Copy, Loop, Memory, Op, Opaque, Scalar, Stmt, Sync
from tl2npu.passes.job import Job
from tl2npu.passes.names.leftovers import drop_leftovers, remove_statements
from tl2npu.passes.plain.hints.tensor_layouts import is_shared
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in

STATEMENTS: Mapping[str, str] = {
    "use_swizzle": "block order on a GPU",
    "annotate_layout": "GPU tile layout",
    "annotate_l2_hit_ratio": "GPU cache hint",
    "annotate_safe_value": "copies already pad with 0",
    "annotate_restrict_buffers": "aliasing hint for CUDA",
    "annotate_min_blocks_per_sm": "GPU occupancy hint",
    "assume": "assumption for the GPU compiler",
    "device_assert": "device-side assertion, which the NPU does not have",
    "print": "GPU print",
    "no_set_max_nreg": "GPU register hint",
    "set_max_nreg": "GPU register hint",
    "inc_max_nreg": "GPU register hint",
    "dec_max_nreg": "GPU register hint",
    "annotate_consumer_reg_alloc": "GPU register hint",
    "annotate_producer_reg_dealloc": "GPU register hint",
    "disable_warp_group_reg_alloc": "GPU register hint",
    "annotate_compile_flags": "flags for CUDA",
    "annotate_pass_configs": "settings of the GPU compiler",
    "fence_proxy_async": "GPU memory fence",
    "func_attr": "hints for the GPU compiler",
    "pdl_sync": "launches run one after the other on an NPU",
    "pdl_trigger": "launches run one after the other on an NPU",
    "sync_threads": "no threads to synchronise",
    "sync_warp": "no threads to synchronise",
}
"""Operators that stand alone and go -> what they are about."""
_ALWAYS = STATEMENTS.keys() - {"sync_threads", "sync_warp", "func_attr", "annotate_layout", "annotate_safe_value"}
"""Those that are hints whatever their arguments are."""

_ATTRIBUTES = ("tir.noalias", "tl.")
_ANNOTATIONS = frozenset({"annotations"})
_REDUCE = frozenset({"batch", "nan_propagate", "annotations"})
_LOOP = frozenset({"coalesced_width", "loop_layout", "prefer_async", "order", "stage", "sync", "group", "annotations"})
_COPY = frozenset(
    {"coalesced_width", "disable_tma", "eviction_policy", "prefer_instruction", "annotations", "loop_layout"}
)
_GEMM = frozenset({"policy", "k_pack", "wg_wait", "annotations"})
_SCOPES = frozenset({"shared", "shared.dyn", "local", "local.fragment", "local.var"})


def drop(job: Job) -> None:
    """Remove layouts, swizzles and the like, which mean nothing on an NPU."""
    statements: list[cst.CSTNode] = []
    arguments: list[cst.Arg] = []
    for stmt in job.kernel.walk():
        name = _called(job, stmt)
        if name in STATEMENTS and _is_hint(job, stmt, name):
            statements.append(stmt.node)
            job.change("TL115", stmt.node, f"`T.{name}`: {STATEMENTS[name]}")
        else:
            for arg in _hint_arguments(job, stmt):
                arguments.append(arg)
                assert arg.keyword is not None
                job.change("TL115", arg, f"`{arg.keyword.value}` is an argument for a GPU")
    edits = Edits(job.file.index)
    for arg in arguments:
        edits.remove(arg)
    remove_statements(job, edits, statements)
    for call in calls_in(job.located.node.body):
        if job.file.names.resolve(call.func) == "tilelang.language.likely" and len(call.args) == 1:
            edits.replace(call, call.args[0].value)
            job.change("TL115", call, "`T.likely`: a hint for the branch predictor")
    job.apply(edits)
    drop_leftovers(job, [*statements, *arguments])


def _called(job: Job, stmt: Stmt) -> str:
    """The operator of a statement, or what it calls with arguments that the catalogue does not know (any more)."""
    if isinstance(stmt, (Op, Sync)):
        return stmt.op.name
    if not (isinstance(stmt, Opaque) and isinstance(stmt.node, cst.Expr) and isinstance(stmt.node.value, cst.Call)):
        return ""
    return job.file.names.operator(stmt.node.value.func)


def _is_hint(job: Job, stmt: Stmt, name: str) -> bool:
    """Whether an operator of :data:`STATEMENTS` is no more than that here."""
    if not isinstance(stmt, (Op, Sync)):
        return name in _ALWAYS
    if name in ("sync_threads", "sync_warp"):
        return _is_for_all(job, stmt)
    if name == "func_attr":
        _refuse_meaning(stmt)
    if name == "annotate_layout":
        _refuse_global_layout(job, stmt)
    if name == "annotate_safe_value":
        _refuse_safe_value(job, stmt)
    return True


def _is_for_all(job: Job, stmt: Op | Sync) -> bool:
    """A barrier of all threads of the block, ``T.sync_threads(3, threads)``; fewer mean roles of their own."""
    count, launch = stmt.args.get("arrive_count"), job.kernel.launch
    if count is None or launch is None or launch.threads is None:
        return count is None
    return isinstance(count, Scalar) and count.sym == launch.threads.sym


def _mapping(stmt: Op | Sync, what: str) -> list[cst.DictElement]:
    value = stmt.call.args[0].value if stmt.call.args else None
    elements = list(value.elements) if isinstance(value, cst.Dict) else []
    pairs = [element for element in elements if isinstance(element, cst.DictElement)]
    if not pairs or len(pairs) != len(elements):
        raise Blocked("TL116", stmt.node, f"cannot read {what}")
    return pairs


def _refuse_meaning(stmt: Op | Sync) -> None:
    """An attribute of the function that is more than a hint, as its symbol or its target."""
    for element in _mapping(stmt, "the attributes"):
        key = element.key.evaluated_value if isinstance(element.key, cst.SimpleString) else ""
        if not isinstance(key, str) or not key.startswith(_ATTRIBUTES):
            raise Blocked("TL194", element, f"the attribute `{code(element.key)}` of the function may mean something")


def _refuse_global_layout(job: Job, stmt: Op | Sync) -> None:
    for element in _mapping(stmt, "the layouts"):
        buffer = job.file.evaluator.buffer(element.key, stmt.env)
        if buffer is None:
            raise Blocked("TL116", element, f"`{code(element.key)}` is not a buffer of the kernel")
        if buffer.memory is Memory.GM and is_shared(job.original, job.def_line):
            text = f"`{buffer.name}` is row-major now in every kernel of this file; check host code that reads it"
            job.note("TL129", element, text, "warning")
            job.change("TL129", element, f"`{buffer.name}` is row-major now")
        elif buffer.memory is Memory.GM:
            text = f"`{buffer.name}` is a global tensor: host code and other kernels depend on its layout"
            raise Blocked("TL116", element, text)


def _refuse_safe_value(job: Job, stmt: Op | Sync) -> None:
    for element in _mapping(stmt, "the argument of annotate_safe_value"):
        value = element.value
        number = value.evaluated_value if isinstance(value, (cst.Integer, cst.Float)) else None
        if number != 0:
            text = f"copies pad `{code(element.key)}` with 0, not with `{code(value)}`"
            raise Blocked("TL116", element, text)


def _hint_arguments(job: Job, stmt: Stmt) -> Iterator[cst.Arg]:
    """The keyword arguments of a statement that only a GPU needs."""
    if isinstance(stmt, Copy):
        yield from _arguments_of("copy", stmt.call)
    elif isinstance(stmt, Loop) and stmt.call is not None:
        yield from _named(stmt.call, _LOOP)
    elif isinstance(stmt, Alloc) and isinstance(stmt.buffer.node, cst.Call):
        for arg in _named(stmt.buffer.node, frozenset({"scope"})):
            if job.file.evaluator.static(arg.value, stmt.env) in _SCOPES:
                yield arg
    elif isinstance(stmt, Op):
        yield from _arguments_of(stmt.op.name, stmt.call)
    elif name := _called(job, stmt):
        call = cst.ensure_type(cst.ensure_type(stmt.node, cst.Expr).value, cst.Call)
        yield from _arguments_of(OLDER.get(name, name), call)


def _arguments_of(operator: str, call: cst.Call) -> Iterator[cst.Arg]:
    if operator == "gemm":
        yield from _named(call, _GEMM)
    elif operator == "copy":
        yield from _named(call, _COPY)
    elif operator.startswith("reduce"):
        for arg in _named(call, _REDUCE):
            if code(arg.keyword or arg) != "nan_propagate" or code(arg.value) == "False":
                yield arg
    elif operator in ("fill", "clear", "cumsum", "cummax", "atomic_add", "finalize_reducer"):
        yield from _named(call, _ANNOTATIONS)


def _named(call: cst.Call, names: frozenset[str]) -> Iterator[cst.Arg]:
    return (arg for arg in call.args if arg.keyword is not None and arg.keyword.value in names)
