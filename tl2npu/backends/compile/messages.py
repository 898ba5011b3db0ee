"""What the compiler says when it rejects a kernel, and which rule is about that.

Each row: a pattern, the rules, and the line of the compiler that says it (tile-ai/tilelang-ascend, 95acbd7f; ``tvm/``
is its TVM). A group ``buffer`` or ``call`` is the name in the user's program that the message is about. Only GPU
kernels call ``use_swizzle`` as the GPU has it: one that is left beside kernels for the NPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """Rules that a message is about, the likeliest first, and the buffer or the call that it names."""

    codes: tuple[str, ...]
    buffer: str = ""
    call: str = ""


ROWS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (r"Memory allocation failed for: (?P<buffer>\w+)", ("TL801",), "src/transform/ascend_memory_planning.cc:648, 678"),
    (r"Unresolved call Op\(tir\.(?P<call>\w+)\)", ("TL733", "TL896"), "tvm/src/target/source/codegen_c.cc:704"),
    (r"Unresolved call Op\(tl\.ascend_(?P<call>\w+)\)", ("TL743",), "tvm/src/target/source/codegen_c.cc:704"),
    (r"Mismatch in sync points between cube and vec", ("TL840", "TL868"), "src/transform/ascend_combinecv.cc:375"),
    (r"ws_info\.shapes\.size\(\) >= 2", ("TL843",), "src/transform/ascend_workspace_reduction.cc:737, 826"),
    (r"threads must be 1 or 2", ("TL815",), "tilelang/language/kernel.py:253, 259"),
    (r"must have exactly one block dimension", ("TL815",), "tilelang/language/kernel.py:248"),
    (r"cannot unpack non-iterable Var", ("TL815", "TL810"), "tvm/python/tvm/script/parser/core/evaluator.py:287"),
    (r"Unsupported data type: bool", ("TL736",), "src/target/codegen_ascend.cc:68, codegen_ascend_pto.cc:134"),
    (r"Buffer address not found: (?P<buffer>\w+)", ("TL893",), "src/target/codegen_ascend_pto.cc:334, 388"),
    (r"`[lr]hs` is null in the binary operator", ("TL732",), "tvm/src/tir/op/op.cc:143, 144"),
    (r"use_swizzle\(\) (missing \d+|got an unexpected)", ("TL735", "TL730"), "tilelang/language/__init__.py:220"),
    (
        r"(?P<call>\w+)\(\) (missing \d+|takes \d+|got an unexpected|got multiple)",
        ("TL730",),
        "Python, in the front end",
    ),
)
"""In order: the first that fits holds."""

_DEATHS: dict[str, tuple[str, ...]] = {"AscendMemoryPlanning": ("TL801",)}
"""Pass -> what it dies of: ``findReusableBlock`` reads ``free_blocks[-1]`` where a buffer does not fit."""

_ROWS = tuple((re.compile(pattern), codes) for pattern, codes, _ in ROWS)


def meaning(message: str, where: str = "") -> Meaning:
    """The rules that a message, or the pass ``where`` in which the compiler died, is about; none where no row fits."""
    for pattern, codes in _ROWS:
        if found := pattern.search(message):
            names = found.groupdict()
            return Meaning(codes, names.get("buffer") or "", names.get("call") or "")
    return Meaning(_DEATHS.get(where, ()))


def line_of(found: Meaning, text: str, first: int, last: int) -> int | None:
    """The line from ``first`` to ``last`` that makes the buffer, or has the call; None if there is none."""
    wanted = (found.buffer and rf"\b{found.buffer}\s*=[^=]") or (found.call and rf"\b{found.call}\s*\(")
    if wanted:
        for number, line in enumerate(text.split("\n")[first - 1 : last], first):
            if re.search(wanted, line):
                return number
    return None
