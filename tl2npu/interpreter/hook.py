"""Puts Triton's interpreter, repaired, and the stand-ins for its extensions where ``import`` finds them."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from tl2npu.extras import pip_command
from tl2npu.interpreter.session import VERSIONS, Interpreter, NoTriton, activated

_SWITCH = "TRITON_INTERPRET"


@contextmanager
def hooked(interpreter: Interpreter) -> Iterator[None]:
    """Inside of the context a script that imports Triton gets its interpreter, and ``interpreter`` every launch.

    Raises NoTriton at the script's import if it cannot be used: other scripts do not need it.
    """
    had = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = "1"
    with ExitStack() as stack, activated(interpreter), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "tl.make_block_ptr is deprecated"
        )  # which is why ``VERSIONS`` ends where it does
        loaded = sys.modules.get("triton")
        usable = loaded is None or _is_usable(loaded)
        finder = _Finder(interpreter, stack, None if usable else loaded)
        sys.meta_path.insert(0, finder)
        try:
            if not usable:
                del sys.modules["triton"]  # so that the script's import asks for it
            elif loaded is not None:
                finder.begin()
            yield
        finally:
            if loaded is not None:
                sys.modules["triton"] = loaded
            sys.meta_path.remove(finder)
            os.environ.pop(_SWITCH)
            if had is not None:
                os.environ[_SWITCH] = had


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds Triton, and begins when it has been loaded."""

    def __init__(self, interpreter: Interpreter, stack: ExitStack, unusable: ModuleType | None) -> None:
        self.interpreter = interpreter
        self.stack = stack
        self.begun = False
        self.unusable = unusable

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "triton" or self.begun:
            return None
        if self.unusable is not None:
            raise _other_version(self.unusable)
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        if found is None:
            raise NoTriton(f"this script needs Triton, which is not installed here; {_install()}")
        self.real = found.loader
        found.loader = self
        return found

    def create_module(self, spec: Any) -> ModuleType | None:
        return self.real.create_module(spec)  # type: ignore[union-attr]

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__.loader = self.real  # type: ignore[union-attr]
        self.real.exec_module(module)  # type: ignore[union-attr]
        self.begin()

    def begin(self) -> None:
        """Repair the interpreter, and take the launches."""
        self.begun = True
        if not _is_usable(sys.modules["triton"]):
            raise _other_version(sys.modules["triton"])
        from tl2npu.interpreter.launching import taken

        self.stack.enter_context(taken(self.interpreter))


def _is_usable(triton: ModuleType) -> bool:
    return (3, 7) <= tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 9)


def _other_version(triton: ModuleType) -> NoTriton:
    return NoTriton(f"Triton {triton.__version__} cannot be used, only {VERSIONS}; {_install()}")


def _install() -> str:
    return f"install the extra: {pip_command('triton')} (Linux on x86-64)"
