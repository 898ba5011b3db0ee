"""The house: who may import whom, and how big a file may grow."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tl2npu.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tl2npu"

DATA = {"results", "devices", "dialects", "codes"}
MAY_IMPORT: dict[str, set[str]] = {
    "results": set(),
    "devices": set(),
    "dialects": {"devices"},
    "codes": {"results"},
    "options": {"dialects", "devices"},
    "source": set(),
    "rules": {"results"},
    "kernel": DATA | {"source"},
    "across": {"results", "source", "kernel"},
    "passes": DATA | {"source", "kernel", "across", "options"},
    "checks": DATA | {"source", "kernel", "options"},
    "suppress": set(),
    "todo": set(),
    "attempts": DATA | {"source", "kernel", "passes", "checks", "options", "suppress"},
    "check": DATA | {"source", "kernel", "across", "passes", "checks", "options", "suppress"},
    "migrate": DATA
    | {"source", "kernel", "across", "passes", "check", "checks", "options", "suppress", "todo", "attempts"},
    "files": {"source"},
    "toolchain": {"devices", "dialects"},
    "simulator": {"devices", "dialects"},
    "verified": {"results"},
    "backends": DATA | {"source", "verified", "options", "toolchain", "traces"},
    "traces": set(),
    "verify": DATA
    | {"toolchain", "backends", "traces", "source", "migrate", "cells", "options", "simulator", "verified"},
    "cells": DATA | {"source", "files"},
    "project": DATA | {"source", "across", "passes", "migrate", "options", "files", "cells", "verify"},
    "sinks": {"results", "source", "project"},
    "checked": DATA | {"options"},
    "config": {"checked", "files", "options", "source"},
    "lsp": DATA | {"source", "cells", "across", "migrate", "options", "files", "project", "config", "report", "rules"},
    "codemod": DATA | {"options", "files", "project", "config"},
    "report": {"results", "devices", "verified", "codes", "rules", "toolchain"},
    "cli": DATA
    | {
        "lsp",
        "source",
        "project",
        "config",
        "options",
        "report",
        "rules",
        "files",
        "sinks",
        "verify",
        "toolchain",
        "traces",
    },
    "__main__": {"cli"},
    "__init__": set(),
}
FORBIDDEN = ("libcst.matchers", "libcst.metadata", "libcst.codemod", "libcst._")

STANDALONE = {"numpy", "torch", "torch_npu", "tilelang", "tvm", "trace_writer"}
"""What scripts may import that run where tl2npu is not installed; the last is a file beside one of them."""

FILES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> list[str]:
    """Every imported module, those inside of functions too; ``from tl2npu import x`` is ``tl2npu.x``."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            bare = node.module == "tl2npu"
            found += [f"tl2npu.{alias.name}" for alias in node.names] if bare else [node.module or ""]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_import_direction(path: Path) -> None:
    own = room(path)
    allowed = MAY_IMPORT[own] | {own}
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("tl2npu.")} - {"__version__"}
    assert rooms <= allowed


def test_the_table_itself_has_no_cycles() -> None:
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        ready = {name for name, needs in MAY_IMPORT.items() if name not in done and needs <= done}
        assert ready, f"cycle among {set(MAY_IMPORT) - done}"
        done |= ready


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*/child/*.py")), ids=lambda path: path.stem)
def test_children_stand_alone(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports(path)}
    assert roots <= STANDALONE | sys.stdlib_module_names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_slow_parts_of_libcst_are_not_used(path: Path) -> None:
    forbidden = [name for name in imports(path) if name.startswith(FORBIDDEN)]
    assert not forbidden or path == PACKAGE / "codemod.py"  # which nothing else imports
    names = {
        node.attr for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)
    }
    assert not names & {"MetadataWrapper", "deep_replace", "CSTTransformer"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_file_sizes(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").split("\n")) <= 500


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys\nfrom tl2npu.cli import main\n"
        "try:\n    main()\nexcept SystemExit as error:\n    assert not error.code\n"
        "slow = {'libcst', 'numpy', 'ml_dtypes', 'black', 'pathspec', 'rich'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    helps = [[command, "--help"] for command in COMMANDS]
    for arguments in (["--help"], *helps, ["--version"], ["devices"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
