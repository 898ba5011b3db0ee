"""``al`` and ``bl``: the extensions of triton-ascend for the cores and memories of A5.

Source: triton-lang/triton-ascend a84b1eb5, ``third_party/ascend/language`` (older versions: other module names).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

AL = ("triton.language.extra.cann.extension", "triton.extension.ascend.language")
BL = ("triton.extension.buffer.language",)
"""Modules of the extensions, newest name first."""

RENAMED: Mapping[str, str] = MappingProxyType(
    {"Scope": "scope", "allocate_local_buffer": "alloc", "copy_from_ub_to_l1": "copy"}
)
"""Older names of functions."""

HINTS = frozenset({"multibuffer", "compile_hint", "debug_barrier"})
"""Functions that change no value."""

RANGES = frozenset({"parallel"})
"""Loops over integers whose turns are independent: which vector core does which (``bind_sub_block``) is a hint."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "sync_block_all": "it makes all blocks wait for each other",
        **dict.fromkeys(("custom", "custom_semantic", "register_custom_op"), "it is code for the device"),
    }
)
"""Names without a counterpart: name -> why. Every other name that is not read has no counterpart either."""

LAUNCH_OPTIONS = frozenset(
    {
        "disable_auto_inject_block_sync",
        "disable_auto_cv_work_space_manage",
        "enable_auto_bind_sub_block",
        "enable_hivm_auto_cv_balance",
        "enable_mixed_cv",
        "limit_auto_multi_buffer_of_local_buffer",
        "limit_auto_multi_buffer_only_for_local_buffer",
        "multibuffer",
        "optimize_dynamic_offset",
        "sync_solver",
        "unit_flag",
        "vf_merge_level",
    }
)
"""Options of the compiler that a launch may pass; they change no value."""
