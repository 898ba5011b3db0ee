"""Annotations of a block or a function: layout, address, padding, attributes."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import (
    BOTH_MODES,
    EXPERT_ONLY,
    NO_MODE,
    mode,
    operator,
    scalar,
    shape,
    variadic,
)
from tl2npu.dialects.catalogue import Core, Kind, Operator, Param, Role

_INIT = "tilelang/language/__init__.py"
_TIR = "tvm:script/ir_builder/tir/ir.py"


def _annotation(name: str, *params: Param, modes: frozenset[str], file: str = _INIT, note: str = "") -> Operator:
    return operator(name, Kind.ANNOTATION, *params, core=Core.NONE, modes=modes, defined=f"{file}:{name}", note=note)


OPERATORS = (
    _annotation(
        "annotate_address",
        shape("address_map"),
        modes=EXPERT_ONLY,
        note="buffer -> byte offset; may let buffers share memory on purpose",
    ),
    _annotation("annotate_layout", shape("layout_map"), modes=EXPERT_ONLY, note="buffer -> layout such as zN or nZ"),
    _annotation("annotate_padding", shape("padding_map"), modes=NO_MODE, note="GPU only"),
    _annotation("import_source", mode("source", "None"), modes=NO_MODE, note="GPU only"),
    operator(
        "init_flag",
        Kind.SYNC,
        shape("fmap"),
        core=Core.NONE,
        modes=EXPERT_ONLY,
        defined=f"{_INIT}:init_flag",
        note="sets flags: source pipe -> destination pipe -> event numbers",
    ),
    operator(
        "clear_flag",
        Kind.SYNC,
        shape("fmap"),
        core=Core.NONE,
        modes=EXPERT_ONLY,
        defined=f"{_INIT}:clear_flag",
        note="waits for flags: source pipe -> destination pipe -> event numbers",
    ),
    _annotation("block_attr", shape("attrs"), modes=BOTH_MODES, file=_TIR),
    _annotation("func_attr", shape("attrs"), modes=BOTH_MODES, file=_TIR),
    _annotation("func_name", mode("name"), modes=BOTH_MODES, file=_TIR),
    _annotation("func_ret", mode("ret_type"), modes=NO_MODE, file=_TIR),
    _annotation("attr", scalar("node"), mode("attr_key"), scalar("value"), modes=EXPERT_ONLY, file=_TIR),
    _annotation("reads", variadic("buffer_slices", Role.READ), modes=NO_MODE, file=_TIR),
    _annotation("writes", variadic("buffer_slices", Role.WRITE), modes=NO_MODE, file=_TIR),
)
