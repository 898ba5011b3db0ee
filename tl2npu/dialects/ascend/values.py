"""What operators take for arguments that are no tiles: words, switches and numbers, where others are rejected.

Source: the assertions of ``ascend_tile.py``, ``reduce_ascend.py``, ``allocate.py`` and ``ascend.py`` of
``tilelang/language`` at 95acbd7f; the patterns of ``T.tile.gather_mask`` are those of AscendC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from tl2npu.dialects import pipes


@dataclass(frozen=True)
class Allowed:
    """``word``: one of ``words``, any if there are none; ``pipe``: the same in any case; ``switch``: True or False;
    ``number``: from ``least`` on; ``flags``: a map of ``T.init_flag``."""

    kind: Literal["word", "pipe", "flags", "switch", "number", "pair"]
    words: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None

    @property
    def shown(self) -> str:
        """The values, for a message."""
        if self.kind in ("switch", "pair"):
            return "True or False" if self.kind == "switch" else "two sizes of 0 or more"
        if self.kind == "number":
            bounds = [f"of {self.least} or more"] if self.least is not None and self.most is None else []
            bounds += [f"from {self.least} to {self.most}"] if self.most is not None else []
            return " ".join(["a number", *bounds])
        return " or ".join(self.words) or "a string"

    def takes(self, value: object) -> bool:
        """Whether a value that is known is one of them."""
        if self.kind == "switch":
            return isinstance(value, bool)
        if self.kind == "pair":
            sizes = value if isinstance(value, tuple) else ()
            return len(sizes) == 2 and all(size is None or Allowed("number", least=0).takes(size) for size in sizes)
        if self.kind == "pipe":
            return isinstance(value, str) and not self.wrong(value)
        if self.kind == "flags":
            return not self.wrong(value)
        if self.kind == "word":
            return isinstance(value, str) and (not self.words or value in self.words)
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def wrong(self, value: object) -> str:
        """What to say of a value in words of its own; empty where a list of what is taken says it."""
        if self.kind == "flags":
            return pipes.wrong_flags(value)
        if self.kind != "pipe" or not isinstance(value, str) or (not value and "" in self.words):
            return ""
        return pipes.unknown(value, self.words)


def _words(text: str) -> Allowed:
    return Allowed("word", tuple(text.split()))


TENSORS, NUMBER = ("VSEL_CMPMASK_SPR", "VSEL_TENSOR_TENSOR_MODE"), "VSEL_TENSOR_SCALAR_MODE"
"""The modes of ``T.tile.select`` for a tile and for a number as its second source."""

VALUES: Mapping[tuple[str, str], Allowed] = MappingProxyType(
    {
        ("tile.select", "selMode"): Allowed("word", (*TENSORS, NUMBER)),
        ("tile.compare", "mode"): _words("EQ NE GT GE LT LE"),
        ("tile.cast", "mode"): _words("CAST_NONE CAST_RINT CAST_FLOOR CAST_CEIL CAST_ROUND CAST_TRUNC CAST_ODD"),
        ("tile.gather_mask", "src1Pattern"): _words("P0101 P1010 P0001 P0010 P0100 P1000 P1111"),
        ("tile.broadcast", "axis"): Allowed("number", least=0, most=1),
        ("tile.topk", "K"): Allowed("number", least=1),
        **{(f"reduce_{name}", "clear"): Allowed("switch") for name in ("max", "min", "sum")},
        **{(f"reduce_{name}", "real_shape"): Allowed("pair") for name in ("max", "min", "sum")},
        ("reduce", "reduce_type"): _words("reduce_max reduce_min reduce_sum"),
        ("alloc_var", "scope"): Allowed("word"),
        ("dump_tensor", "desc"): Allowed("number"),
        **{(name, side): Allowed("pipe", pipes.PIPES) for name in ("set_flag", "wait_flag") for side in ("src", "dst")},
        **{(name, "pipe"): Allowed("pipe", pipes.WITH_ALL) for name in ("pipe_barrier", "set_cross_flag")},
        **{(name, "fmap"): Allowed("flags") for name in ("init_flag", "clear_flag")},
        ("wait_cross_flag", "pipe"): Allowed("pipe", (*pipes.WITH_ALL, "")),
    }
)
"""Operator and parameter -> what it takes; None is taken where it is the default."""

DIVIDED: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {"use_swizzle": (("m", "block_m"), ("n", "block_n")), "npu_use_swizzle": (("m", "block_m"), ("n", "block_n"))}
)
"""Operator -> parameters of which the first must be a multiple of the second."""

JIT: Mapping[str, Allowed] = MappingProxyType(
    {
        "target": _words("auto ascendc pto cuda hip webgpu c llvm"),  # each may have options behind it
        "execution_backend": _words("cython ctypes dlpack"),
    }
)
"""Arguments of ``tilelang.jit`` (``tilelang/utils/target.py``, ``tilelang/jit/kernel.py``)."""
