"""The keys of ``pass_configs``: members of ``tilelang.PassConfigKey`` and their string forms.

Source: ``tilelang/transform/pass_config.py``. Both forms are equal at run time: the class is a string enumeration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

ASCEND_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "TL_ASCEND_AUTO_CV_COMBINE": "tl.ascend_auto_cv_combine",
        "TL_ASCEND_AUTO_CV_SYNC": "tl.ascend_auto_cross_core_sync",
        "TL_ASCEND_AUTO_SYNC": "tl.ascend_auto_sync",
        "TL_ASCEND_MEMORY_PLANNING": "tl.ascend_memory_planning",
    }
)
"""The keys that make a Developer-mode kernel, by member name; all are booleans that are off by default."""

STRING_OF: Mapping[str, str] = MappingProxyType(
    {
        **ASCEND_KEYS,
        "TL_SIMPLIFY": "tl.Simplify",
        "TL_DYNAMIC_ALIGNMENT": "tl.dynamic_alignment",
        "TL_DISABLE_DYNAMIC_TAIL_SPLIT": "tl.disable_dynamic_tail_split",
        "TL_DISABLE_WARP_SPECIALIZED": "tl.disable_warp_specialized",
        "TL_CONFIG_INDEX_BITWIDTH": "tl.config_index_bitwidth",
        "TL_DISABLE_TMA_LOWER": "tl.disable_tma_lower",
        "TL_DISABLE_SAFE_MEMORY_ACCESS": "tl.disable_safe_memory_legalize",
        "TL_DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS": "tl.debug_merge_shared_memory_allocations",
        "TIR_ENABLE_EQUIV_TERMS_IN_CSE": "tir.enable_equiv_terms_in_cse_tir",
        "TIR_DISABLE_CSE": "tir.disable_cse_tir",
        "TIR_SIMPLIFY": "tir.Simplify",
        "TIR_DISABLE_STORAGE_REWRITE": "tir.disable_storage_rewrite",
        "TIR_DISABLE_VECTORIZE": "tir.disable_vectorize",
        "TIR_USE_ASYNC_COPY": "tir.use_async_copy",
        "TIR_ENABLE_DEBUG": "tir.enable_debug",
        "TIR_MERGE_STATIC_SMEM": "tir.merge_static_smem",
        "TIR_ADD_LOWER_PASS": "tir.add_lower_pass",
        "TIR_NOALIAS": "tir.noalias",
        "CUDA_KERNELS_OUTPUT_DIR": "cuda.kernels_output_dir",
    }
)
"""Every key of the compiler: member name -> string form."""

NPUIR_MEMBERS: frozenset[str] = (frozenset(STRING_OF) - frozenset(ASCEND_KEYS)) | {
    "NPUIR_ENABLE_AUTO_MULTI_BUFFER",
    "NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC",
    "TL_ENABLE_PLAN_AND_UPDATE_BUFFER_ALLOCATION",
}
"""The members of ``tilelang.PassConfigKey`` in branch npuir (bd7c60c3): it has none of the keys of Developer mode."""

_MEMBER_OF = {text: member for member, text in STRING_OF.items()}
_QUOTED = re.compile(r"""(?P<quote>['"])(?P<text>[^'"]*)(?P=quote)""")
_MEMBER = re.compile(r"(?:[A-Za-z_]\w*\.)*(?P<member>[A-Z][A-Z0-9_]*)(?:\.value)?")
_ITEM = re.compile(r"(?:[A-Za-z_]\w*\.)*PassConfigKey\[(?P<quote>['\"])(?P<member>\w+)(?P=quote)\]")


def canonical_key(text_or_string: str) -> str | None:
    """The member name of a key, however it is written; None for anything that is no key of the compiler.

    Accepts source text (``tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC``, with ``.value`` or an index by name too,
    ``"tl.ascend_auto_sync"`` with its quotes) and the bare string form (``tl.ascend_auto_sync``).
    """
    text = text_or_string.strip()
    if text in _MEMBER_OF:
        return _MEMBER_OF[text]
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return _MEMBER_OF.get(quoted["text"])
    found = _MEMBER.fullmatch(text) or _ITEM.fullmatch(text)
    return found["member"] if found and found["member"] in STRING_OF else None


def string_of(resolved: str) -> str | None:
    """The string that ``tilelang.PassConfigKey.TL_A_B`` equals, ``"tl.a_b"`` for most of those that only GPUs have
    (a35008a4); None for any other name."""
    owner, _, member = resolved.rpartition(".")
    regular = member.startswith("TL_") and not member.startswith(("TL_SIMPLIFY_", "TL_DUMP_IR_DIR"))
    if owner != "tilelang.PassConfigKey" or not (regular or member in STRING_OF):
        return None
    return STRING_OF.get(member, f"tl.{member[3:].lower()}")
