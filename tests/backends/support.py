"""A machine with an NPU, as far as the stand-ins go, and two files to verify on it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.in_process import children_in_copies, jobs_in_this_process, tl2npu

ROOT = Path(__file__).resolve().parents[2]
STANDINS = ROOT / "tests" / "standins"

HEAD = """import tilelang
import tilelang.language as T
"""
OLD = (
    HEAD
    + """

@tilelang.jit(out_idx=[2])
def add(M, N, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(M // 32, is_npu=True) as (cid, vid):
            a = T.alloc_ub((16, N), dtype)
            b = T.alloc_ub((16, N), dtype)
            with T.Scope("V"):
                T.copy(A[cid * 32 + vid * 16, 0], a)
                T.copy(B[cid * 32 + vid * 16, 0], b)
                T.barrier_all()
                T.tile.add(a, a, b)
                T.barrier_all()
                T.copy(a, C[cid * 32 + vid * 16, 0])

    return main
"""
)
NEW = (
    HEAD
    + """

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[2], pass_configs=pass_configs)
def add(M, N, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(M // 32, threads=2, is_npu=True) as (cid):
            a = T.alloc_shared((32, N), dtype)
            b = T.alloc_shared((32, N), dtype)
            T.copy(A[cid * 32, 0], a)
            T.copy(B[cid * 32, 0], b)
            T.tile.add(a, a, b)
            T.copy(a, C[cid * 32, 0])

    return main
"""
)
CALL = "add(M=64, N=64)"


class Machine:
    """A folder with an interpreter that has the stand-ins, tools, and a tool kit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        tools = folder / "bin"
        tools.mkdir()
        for name in ("bisheng", "mssanitizer", "msprof"):
            text = (STANDINS / "tools.py").read_text("utf-8")
            _program(tools / name, f"#!{sys.executable}\n{text}")
        self.modules = (STANDINS / "device", ROOT)
        paths = os.pathsep.join(map(str, self.modules))
        self.python = folder / "python"
        _program(self.python, f'#!/bin/sh\nPYTHONPATH="{paths}" exec "{sys.executable}" "$@"\n')
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": os.pathsep.join((str(tools), os.environ["PATH"])),
            "OPENBLAS_NUM_THREADS": "1",
        }

    def with_cann(self, *libraries: str) -> Machine:
        """Give it a tool kit with the simulators of these chips."""
        home = self.folder / "cann"
        for name in libraries:
            library = home / "tools" / "simulator" / name / "lib"
            library.mkdir(parents=True)
            (library / "libruntime_camodel.so").touch()
        self.environment["ASCEND_HOME_PATH"] = str(home)
        return self

    def command(
        self, *args: str, fault: str = "", python: str | None = None, fresh: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run tl2npu there. ``fresh``: its children are new processes, as for a user."""
        given = [*args] if "--python" in args or python == "" else [*args, "--python", python or str(self.python)]
        environment = {**self.environment, "TL2NPU_STANDIN": fault}
        if fresh:
            return tl2npu(*given, cwd=self.folder, environment=environment, fresh=True)
        with jobs_in_this_process(), children_in_copies({str(self.python): self.modules}):
            return tl2npu(*given, cwd=self.folder, environment=environment, fresh=True)

    def verify(
        self, *args: str, old: str = OLD, new: str = NEW, call: str | None = CALL, fault: str = "", **named: Any
    ) -> tuple[int, dict[str, Any]]:
        """Verify two files with a backend; the exit code and the result."""
        (self.folder / "old.py").write_text(old, encoding="utf-8")
        (self.folder / "new.py").write_text(new, encoding="utf-8")
        calls = () if call is None else ("--args", call)
        backend = () if "--backend" in args else ("--backend", "npu")
        done = self.command(
            "verify", "old.py", "new.py", *backend, *calls, "--format", "json", *args, fault=fault, **named
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def codes(result: dict[str, Any]) -> list[str]:
    return [found["code"] for found in result["diagnostics"]]


def said(result: dict[str, Any], code: str) -> str:
    return next(found["message"] for found in result["diagnostics"] if found["code"] == code)
