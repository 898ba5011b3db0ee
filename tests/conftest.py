"""What every process finds that a test starts."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # Where byte code may not stand beside the sources, each child would compile all of tl2npu: two seconds each.
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        folder = tempfile.mkdtemp(prefix="tl2npu-bytecode-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        del os.environ["PYTHONDONTWRITEBYTECODE"]
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        sys.dont_write_bytecode, sys.pycache_prefix = False, folder
