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

    Raises NoTriton, at the script's import or here where Triton is loaded already, if it cannot be used.
    """
    had = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = "1"
    with ExitStack() as stack, activated(interpreter), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "tl.make_block_ptr is deprecated"
        )  # which is why ``VERSIONS`` ends where it does
        finder = _Finder(interpreter, stack)
        sys.meta_path.insert(0, finder)
        try:
            if "triton" in sys.modules:
                finder.begin()
            yield
        finally:
            sys.meta_path.remove(finder)
            os.environ.pop(_SWITCH)
            if had is not None:
                os.environ[_SWITCH] = had


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds Triton, and begins when it has been loaded."""

    def __init__(self, interpreter: Interpreter, stack: ExitStack) -> None:
        self.interpreter = interpreter
        self.stack = stack
        self.begun = False

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "triton" or self.begun:
            return None
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
        version = sys.modules["triton"].__version__
        if not (3, 7) <= tuple(int(part) for part in version.split(".")[:2]) < (3, 9):
            raise NoTriton(f"Triton {version} cannot be used, only {VERSIONS}; {_install()}")
        from tl2npu.interpreter.launching import taken

        self.stack.enter_context(taken(self.interpreter))


def _install() -> str:
    return f"install the extra: {pip_command('triton')} (Linux on x86-64)"
