"""What compiles a prim_func, and which of its arguments a position stands for, in each of the languages.

An NPU's ``compile`` and ``JITKernel`` take ``workspace_idx`` in third place, those of the others do not have it.
``jit`` takes all but the function by name in every language.
"""

from __future__ import annotations

from typing import Literal

Compiler = Literal["jit", "compile", "cached", "tuner"]

COMPILERS: dict[str, Compiler] = {
    "tilelang.jit": "jit",
    "tilelang.lazy_jit": "jit",
    "tilelang.compile": "compile",
    "tilelang.JITKernel": "compile",
    "tilelang.cached": "cached",
    "tilelang.cache.cached_npu": "cached",
}

CERTAIN = ("func", "out_idx")
"""The arguments that come first whatever the language."""

_ORDER: dict[tuple[Compiler, str], tuple[str, ...]] = {
    ("compile", "gpu"): (
        *(*CERTAIN, "execution_backend", "target", "target_host", "verbose", "pass_configs"),
        "compile_flags",
    ),
    ("compile", "ascend"): (
        *(*CERTAIN, "workspace_idx", "execution_backend", "target", "target_host", "platform", "verbose"),
        "pass_configs",
    ),
    ("compile", "npuir"): (*CERTAIN, "execution_backend", "target", "target_host", "verbose", "pass_configs"),
    ("cached", "gpu"): CERTAIN,
    ("cached", "ascend"): (*CERTAIN, "workspace_idx"),
    ("cached", "npuir"): (*CERTAIN, "target", "target_host", "execution_backend", "verbose", "pass_configs"),
}

_TUNER = ("out_idx", "target", "execution_backend", "target_host", "verbose", "pass_configs")
"""``AutoTuner.set_compile_args``."""


def order(compiler: Compiler, dialect: str) -> tuple[str, ...]:
    """The names of the arguments by position."""
    if compiler == "tuner":
        return _TUNER
    return CERTAIN[:1] if compiler == "jit" else _ORDER[compiler, dialect]


_ELSE = ("execution_backend", "verbose", "pass_configs", "debug_root_path")
_JIT: dict[str, frozenset[str]] = {
    "ascend": frozenset((*"out_idx workspace_idx target target_host platform".split(), *_ELSE)),
    "npuir": frozenset(("out_idx", "target", "target_host", *_ELSE)),
}


def arguments(compiler: Compiler, dialect: str) -> frozenset[str]:
    """The arguments that ``tilelang.jit`` or ``tilelang.compile`` takes by name; empty where that is not known.

    Sources: ``tilelang/jit/__init__.py`` of tile-ai/tilelang-ascend, branches ascendc_pto and npuir.
    """
    if compiler == "jit":
        return _JIT.get(dialect, frozenset())
    return frozenset(_ORDER[compiler, dialect]) if compiler == "compile" else frozenset()
