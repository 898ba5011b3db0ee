"""tl2npu: source-to-source migration of TileLang kernels to Ascend Developer mode.

``migrate`` and ``check`` are for Python programs (docs/api.md); everything else is an internal of the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tl2npu.api import Change, Diagnostic, FileResult, InputError, KernelResult, Options, check, migrate

__version__ = "0.1.0"
__all__ = ["Change", "Diagnostic", "FileResult", "InputError", "KernelResult", "Options", "check", "migrate"]


def __getattr__(name: str) -> Any:
    """The names of the interface, loaded when they are asked for: the command line starts without them."""
    if name not in __all__:
        raise AttributeError(f"module 'tl2npu' has no attribute {name!r}")
    from tl2npu import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
