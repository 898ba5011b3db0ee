"""Which texts hold Triton kernels; imported for every file of a tree, so that it costs next to nothing."""

from __future__ import annotations

import re

_TUNER = {"libentry": "flag_gems.utils.libentry.libentry", "libtuner": "triton.autotune"}
_SHIM = {"tl_extra_shim": "triton.language.extra.libdevice"}
REEXPORTS: dict[str, dict[str, str]] = {
    "vllm.triton_utils": {"triton": "triton", "tl": "triton.language"},
    "flag_gems.utils": {**_TUNER, **_SHIM, "triton_lang_extension": "flag_gems.utils.triton_lang_extension"},
    "flag_gems.utils.libentry": _TUNER,
    "flag_gems.utils.triton_lang_helper": _SHIM,
    "flag_gems.utils.triton_lang_extension": {
        name: f"triton.language.{name}" for name in ("program_id", "num_programs")
    },
    "fla.ops.utils.cache": {"fla_cache_autotune": "triton.autotune"},
}
"""Modules of other projects that pass Triton's names on, or names of their own that mean the same in a kernel.

Sources: vllm-project/vllm, ``vllm/triton_utils/__init__.py``; flagos-ai/FlagGems, ``src/flag_gems/utils``, where
``libtuner`` is an autotuner with the same configurations, and ``program_id`` is ``tl.program_id`` in 64 bits;
fla-org/flash-linear-attention, ``fla/ops/utils/cache.py``: an autotuner that keeps its choices in files."""
LAUNCH_CACHES = frozenset(
    {
        "flag_gems.utils.libentry.libentry",
        "sglang.srt.utils.cached_triton_kernel",
        "sglang.srt.utils.common.cached_triton_kernel",
    }
)
"""Decorators that launch the same kernel with less work on the host (FlagGems, ``utils/libentry.py``;
sgl-project/sglang, ``srt/utils/common.py``)."""

_MODULES = "|".join(map(re.escape, ("triton", *(name for name, names in REEXPORTS.items() if "triton" in names))))
_IMPORT = re.compile(rf"^[ \t]*(?:from|import(?:[ \t]+[\w. \t]+,)*)[ \t]+(?:{_MODULES})\b".encode(), re.MULTILINE)
_KERNELS = re.compile(rb"^[ \t]*(?:import|from)[ \t](?:[^\n(]|\([^)]*)*?(?:triton|kernel)", re.MULTILINE)


def triton_name(path: str) -> str:
    """What a dotted name is called in Triton, where a module of ``REEXPORTS`` has it; else the same name."""
    module, _, name = path.rpartition(".")
    return REEXPORTS.get(module, {}).get(name, path)


def is_triton(data: bytes) -> bool:
    """True if a file may hold Triton kernels."""
    return b"triton" in data and b"jit" in data and _IMPORT.search(data) is not None


def may_launch(data: bytes) -> bool:
    """True if a file may launch Triton kernels, its own or those of another file."""
    return is_triton(data) or (b"](" in data and _KERNELS.search(data) is not None)
