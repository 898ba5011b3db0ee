"""The house: who may import whom, and how big a file may grow."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.each import each
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
    "printed": set(),
    "passes": DATA | {"source", "kernel", "tile", "across", "options", "printed"},
    "checks": DATA | {"source", "kernel", "options"},
    "costs": set(),
    "cost": DATA | {"source", "kernel", "checks", "options", "costs"},
    "costing": {"cost", "costs", "languages", "options", "results"},
    "suppress": {"codes"},
    "todo": set(),
    "evaluate": DATA | {"source", "kernel", "checks"},
    "strategy": DATA | {"source", "kernel", "passes", "checks", "evaluate", "options", "suppress"},
    "speed": {"kernel", "checks", "passes", "cost"},
    "imported": DATA | {"source", "kernel", "across", "passes", "checks", "options", "suppress", "files"},
    "checking": DATA | {"source", "kernel", "across", "passes", "checks", "options", "suppress", "imported"},
    "migration": DATA
    | {"source", "kernel", "across", "passes", "checking", "checks", "options", "suppress"}
    | {"marked", "strategy", "speed", "imported"},
    "marked": DATA | {"checking", "options", "todo"},
    "tile": {"dialects", "kernel"},
    "triton": DATA | {"kernel", "tile", "source", "across", "options", "migration", "marked", "suppress"}
    | {"checks", "evaluate"},
    "own_operators": {"results"},
    "languages": {"own_operators", "checking", "migration", "options", "results", "source", "triton"}
    | {"files", "imported"},
    "files": {"source"},
    "errors": set(),
    "toolchain": {"devices", "dialects", "source"},
    "simulator": {"devices", "dialects"},
    "interpreter": {"devices", "simulator", "verified", "extras"},
    "verified": {"results"},
    "cpu_time": set(),
    "extras": set(),
    "backends": DATA | {"errors", "source", "verified", "options", "toolchain", "traces", "cpu_time"},
    "traces": set(),
    "verify": DATA
    | {"toolchain", "backends", "traces", "source", "languages", "migration", "cells", "options"}
    | {"interpreter", "simulator", "verified", "across", "files", "imported"},
    "cells": DATA | {"source", "files"},
    "project": DATA
    | {"languages", "source", "across", "passes", "migration", "options", "files", "cells", "verify", "cpu_time"}
    | {"imported"},
    "sinks": {"results", "source", "project"},
    "checked": DATA | {"options", "source"},
    "config": {"checked", "files", "options", "results", "source"},
    "lsp": DATA
    | {"source", "cells", "across", "languages", "options", "files", "project", "config", "report", "rules"},
    "mcp": {"api", "config", "options", "report", "results", "rules", "source", "verify"},
    "codemod": DATA | {"options", "files", "project", "config"},
    "report": {"results", "devices", "verified", "costs", "codes", "errors", "rules", "toolchain"},
    "cli": DATA
    | {
        "printed",
        "cost",
        "costing",
        "errors",
        "extras",
        "lsp",
        "mcp",
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
    "api": {"results", "source", "options", "checked", "config", "files", "project"},
    "__init__": {"api"},
}
FORBIDDEN = ("libcst.matchers", "libcst.metadata", "libcst.codemod", "libcst._")

STANDALONE = {"numpy", "torch", "torch_npu", "tilelang", "tvm", "trace_writer"}
"""What scripts may import that run where tl2npu is not installed; the last is a file beside one of them."""

KNOTS = {
    frozenset(f"tl2npu.{package}.{name}" for name in names.split())
    for package, names in {
        "passes.gpu.elementwise": "integers legality masks",
        "simulator.ir": "buffer expr linear",
        "simulator.hazards": "definedness flags observer report watched",
    }.items()
}
"""Modules whose classes hold each other."""

ROOT_FILES = sorted(PACKAGE.rglob("*.py"))
every_file = each(ROOT_FILES, lambda path: path.relative_to(PACKAGE))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every imported module, those inside of functions too; ``from tl2npu import x`` is ``tl2npu.x``."""
    found: list[str] = []
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            bare = node.module == "tl2npu"
            found += [f"tl2npu.{alias.name}" for alias in node.names] if bare else [node.module or ""]
    return tuple(found)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement below, without the expressions, which are most of a tree."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        found = getattr(tree, field, ())
        for node in found if isinstance(found, list) else ():  # the body of a lambda or of `a if b else c` is none
            yield node
            yield from statements(node)


@every_file
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


def test_modules_import_each_other_in_no_circle() -> None:
    """Imports inside functions and for types count as well; what is left is told, so that it only shrinks."""
    modules = {"tl2npu." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in ROOT_FILES}
    graph = {name: {f for f in _imported_modules(path, modules) if f != name} for name, path in modules.items()}
    assert {frozenset(circle) for circle in _circles(graph)} == KNOTS


def _imported_modules(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from (name for name in (inner, f"{inner}.__init__") if name in modules)
                if inner not in modules:
                    yield from (name for name in (node.module, f"{node.module}.__init__") if name in modules)


def _circles(graph: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Modules that are reached from themselves: what neither imports nothing nor is imported by nothing goes first."""
    left = dict(graph)
    while left:
        needed = {name for needs in left.values() for name in needs}
        free = [name for name, needs in left.items() if not needs & left.keys() or name not in needed]
        if not free:
            break
        for name in free:
            del left[name]
    reach = {name: _reached(left, name) for name in left}
    yield from ({other for other in seen if name in reach[other]} for name, seen in reach.items() if name in seen)


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = (graph[waiting.pop()] & graph.keys()) - seen
        seen |= new
        waiting += new
    return seen


@each(sorted(PACKAGE.glob("*/child/*.py")), lambda path: path.stem)
def test_children_stand_alone(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports(path)}
    assert roots <= STANDALONE | sys.stdlib_module_names


@every_file
def test_slow_parts_of_libcst_are_not_used(path: Path) -> None:
    forbidden = [name for name in imports(path) if name.startswith(FORBIDDEN)]
    assert not forbidden or path == PACKAGE / "codemod.py"  # which nothing else imports
    text = path.read_text(encoding="utf-8")
    slow = {name for name in ("MetadataWrapper", "deep_replace", "CSTTransformer") if name in text}
    names = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)} if slow else set()
    assert not names & slow


@every_file
def test_file_sizes(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").split("\n")) <= 520


def test_help_imports_nothing_slow() -> None:
    """One process for all: what a command imports stays imported, and is seen after it."""
    code = (
        "import json, sys\nfrom tl2npu.cli import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    sys.argv[1:] = arguments\n"
        "    try:\n        main()\n    except SystemExit as error:\n        assert not error.code, arguments\n"
        "    slow = {'libcst', 'numpy', 'ml_dtypes', 'black', 'rich'} & set(sys.modules)\n"
        "    assert not slow, (arguments, slow)\n"
        "    print('--', arguments)\n"
    )
    runs = [["--help"], *([command, "--help"] for command in COMMANDS), ["--version"], ["devices"]]
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(runs)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.split("\n") if line.startswith("-- [")] == [f"-- {run}" for run in runs]


def test_a_kernel_imports_the_passes_of_its_own_language() -> None:
    """The others are a quarter of a cold start."""
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from tl2npu.languages import migrate_source\nfrom tl2npu.options import Options\n"
        "path = 'fixtures/workspace/gemm_relu/before.py'\n"
        "assert migrate_source(Path(path).read_text(), path, Options()).kernels[0].rewritten\n"
        "print([name for name in sys.modules if name.startswith('tl2npu.')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "tl2npu.passes.ascend.scopes" in done.stdout, done.stderr
    others = ("tl2npu.triton", "tl2npu.passes.gpu.elementwise", "tl2npu.passes.npuir.from_ascend", "tl2npu.simulator")
    assert [name for name in others if name in done.stdout] == []


def test_check_imports_nothing_that_migrates() -> None:
    """It would be a third of the start of ``tl2npu check``."""
    code = (
        "import sys\nfrom tl2npu.cli import main\n"
        "sys.argv[1:] = ['check', '--no-cache', '-j', '1', 'fixtures/workspace/gemm_relu/after.py']\n"
        "try:\n    main()\nexcept SystemExit as error:\n    assert not error.code\n"
        "print([name for name in sys.modules if name.startswith(('tl2npu.', 'numpy'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "tl2npu.checks.run" in done.stdout, done.stderr
    others = ("'numpy'", "tl2npu.migration", "tl2npu.strategy", "tl2npu.evaluate", "tl2npu.passes.pipelines")
    assert [name for name in others if name in done.stdout] == []
