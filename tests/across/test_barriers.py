"""Macros of another module that only synchronise: their calls go, the other file stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.across.support import repository, result_of
from tests.passes.support import vector_file
from tl2npu.cli import cli

LIBRARY = """
import tilelang.language as T


@T.macro
def fence():
    T.barrier_all()


@T.macro
def pair(event):
    T.set_flag("mte2", "v", event)
    T.wait_flag("mte2", "v", event)


@T.macro
def several(n):
    \"\"\"Wait for the load.\"\"\"
    event = n % 2
    for i in T.serial(2):
        pair(event + i)
    if n > 0:
        fence()


@T.macro
def placed(x):
    T.annotate_address({x: 0})


@T.macro
def placed_and_fenced(x):
    T.annotate_address({x: 0})
    T.barrier_all()


def plain(event):
    pair(event)


@T.macro
def doubled_and_fenced(x):
    T.tile.add(x, x, x)
    T.barrier_all()


"""
BODY = """a = T.alloc_ub((16, 64), "float32")
T.copy(A[cid * 32 + vid * 16, 0], a)
{use}
T.tile.exp(a, a)
{use}
T.copy(a, O[cid * 32 + vid * 16, 0])
"""


def repository_of(root: Path, imports: str, use: str) -> Path:
    """A kernel that calls a macro of ``lib``, twice."""
    text = vector_file(BODY.format(use=use))
    text = text.replace("import torch\n", f"import torch\n{imports}\n", 1)
    return repository(root, {"lib.py": LIBRARY, "k.py": text}) / "k.py"


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("from lib import fence", "fence()"),
        ("from lib import fence as f", "f()"),
        ("import lib", "lib.fence()"),
        ("from lib import *", "fence()"),
        ("from lib import pair", "pair(0)"),
        ("from lib import several", "several(cid)"),
        ("import lib as sync", "sync.several(cid)"),
        ("from lib import placed", "placed(a)"),
        ("from lib import placed_and_fenced", "placed_and_fenced(a)"),
        ("from lib import plain", "plain(1)"),
    ],
)
def test_the_call_goes(tmp_path: Path, imports: str, use: str) -> None:
    path = repository_of(tmp_path, imports, use)
    done = CliRunner().invoke(cli, ["migrate", "--no-cache", "-j", "1", str(tmp_path)])
    assert done.exit_code == 0, done.output
    new = path.read_text()
    assert "threads=2" in new
    assert use not in new
    assert (imports in new) == ("*" in imports)
    assert (tmp_path / "lib.py").read_text() == LIBRARY.lstrip("\n")


def test_a_macro_that_does_more_is_written_in_place(tmp_path: Path) -> None:
    path = repository_of(tmp_path, "from lib import doubled_and_fenced", "doubled_and_fenced(a)")
    (kernel,) = result_of(path).kernels
    assert kernel.target == "developer"
    new = result_of(path).new_text or ""
    assert new.count("T.tile.add(a, a, a)") == 2
    assert "barrier" not in new
    assert "doubled" not in new
    assert (tmp_path / "lib.py").read_text() == LIBRARY.lstrip("\n")


def test_a_macro_of_the_file_goes_with_its_last_call(tmp_path: Path) -> None:
    """Names and addresses that it has for itself go with it; where another kernel calls it, it stays."""
    text = vector_file(BODY.format(use="several(cid)"))
    macros = LIBRARY.replace("import tilelang.language as T\n", "").split("@T.macro\ndef placed(x)")[0]
    text = text.replace("@tilelang.jit", f"{macros.strip()}\n\n\n@tilelang.jit", 1)
    path = repository(tmp_path, {"k.py": text}) / "k.py"
    result = result_of(path)
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    new = result.new_text or ""
    assert "several" not in new
    assert "event" not in new.split("def factory")[1]
