"""What is the same for all tests: the environment of processes, when garbage is collected, which run without being
asked for, who compiles them, and that none is timed."""

from __future__ import annotations

import compileall
import gc
import importlib
import os
import shutil
import sys
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tl2npu.verify.threads import one_thread

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_configure(config: pytest.Config) -> None:
    os.environ.update(one_thread())
    settings.load_profile("untimed")  # a busy machine is no failure
    # Where byte code may not stand beside the sources, each child would compile all of tl2npu: two seconds each.
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        folder = tempfile.mkdtemp(prefix="tl2npu-bytecode-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        del os.environ["PYTHONDONTWRITEBYTECODE"]
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        sys.dont_write_bytecode, sys.pycache_prefix = False, folder


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: tests of limits of time wait."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """In a fresh checkout each process compiles a share of tl2npu and of the tests, and reads what others compiled."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or not _asks_for_everything(session.config):
        return
    here, of = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in sorted((session.config.rootpath / "tl2npu").rglob("*.py"))[here::of]:
        compileall.compile_file(path, quiet=2)
    for path in sorted(Path(__file__).parent.rglob("test_*.py"))[here::of]:
        with suppress(Exception, pytest.skip.Exception):  # collecting says what is wrong
            importlib.import_module(".".join(path.relative_to(session.config.rootpath).with_suffix("").parts))


def _asks_for_everything(config: pytest.Config) -> bool:
    return [Path(argument).resolve() for argument in config.args] == [config.rootpath / "tests"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without ``-m``, ``-k`` and paths, tests that are marked as thorough are left out, of sampled ones two thirds."""
    for item in items:
        if item.get_closest_marker("sampled") and zlib.crc32(item.nodeid.encode()) % 3 != 1:
            item.add_marker("thorough")
    if config.option.markexpr or config.option.keyword or not _asks_for_everything(config):
        return
    thorough = [item for item in items if item.get_closest_marker("thorough")]
    items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    config.hook.pytest_deselected(items=thorough)


def pytest_collection_finish() -> None:
    # Thousands of tests and all modules stay until the end; to look through them again and again takes a tenth.
    gc.collect()
    gc.freeze()
    gc.set_threshold(1_000_000, 20, 100)


def pytest_sessionfinish() -> None:
    gc.freeze()  # pytest looks through everything five times for what could not be finalised
