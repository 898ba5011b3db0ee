"""The codemod of LibCST against ``tl2npu migrate``: the same bytes, run as its users run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.in_process import python, tl2npu

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
GPU = FIXTURES / "gpu" / "flash_attention" / "before.py"
VID = FIXTURES / "workspace" / "gemm_leaky_relu" / "before.py"
COMMAND = ("-x", "tl2npu.codemod.MigrateCommand", "--no-format")


def codemod(*arguments: str, place: Path, fresh: bool = False) -> subprocess.CompletedProcess[str]:
    # Not with -m: it would put the directory first where modules are looked for.
    start = f"import sys, runpy; sys.path.insert(0, {str(ROOT)!r}); sys.argv = sys.argv[1:]; "
    start += "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    words = ["-c", start, "libcst.tool", "codemod", *arguments, "-j", "1", "--hide-progress"]
    return python(*words, cwd=place, fresh=fresh)


@pytest.mark.parametrize(
    ("source", "options"),
    [(GPU, ()), (VID, ()), (VID, ("--threads", "1")), (GPU, ("--to", "npuir", "--grid2d"))],
    ids=["gpu", "vid", "threads", "npuir"],
)
def test_the_same_bytes_as_migrate(source: Path, options: tuple[str, ...], tmp_path: Path) -> None:
    old = source.read_bytes()
    for name in ("mine.py", "theirs.py"):
        (tmp_path / name).write_bytes(old)
    mine = tl2npu("migrate", *options, "mine.py", cwd=tmp_path)
    theirs = codemod(*COMMAND, *options, "theirs.py", place=tmp_path)
    assert mine.returncode == theirs.returncode == 0, theirs.stderr
    assert (tmp_path / "mine.py").read_bytes() == (tmp_path / "theirs.py").read_bytes() != old
    if not options:  # a second run changes nothing
        assert codemod(*COMMAND, *options, "theirs.py", place=tmp_path).returncode == 0
        assert (tmp_path / "mine.py").read_bytes() == (tmp_path / "theirs.py").read_bytes()


def test_ends_of_lines_stay(tmp_path: Path) -> None:
    old = VID.read_bytes()
    texts = (old.replace(b"\n", b"\r\n"), old.rstrip(), b"\f\n" + old)
    names = [f"{number}.py" for number in range(len(texts))]
    for folder in ("mine", "theirs"):
        (tmp_path / folder).mkdir()
        for name, text in zip(names, texts, strict=True):
            (tmp_path / folder / name).write_bytes(text)
    tl2npu("migrate", "mine", cwd=tmp_path)
    codemod(*COMMAND, "theirs", place=tmp_path)
    for name, text in zip(names, texts, strict=True):
        mine, theirs = ((tmp_path / folder / name).read_bytes() for folder in ("mine", "theirs"))
        assert mine == theirs != text, name


def test_found_through_the_configuration_of_libcst(tmp_path: Path) -> None:
    """As docs/codemod.md shows it: the module of the command stands in .libcst.codemod.yaml."""
    page = (ROOT / "docs" / "codemod.md").read_text(encoding="utf-8")
    (tmp_path / ".libcst.codemod.yaml").write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    (tmp_path / "kernel.py").write_bytes(VID.read_bytes())
    done = codemod("codemod.MigrateCommand", "--no-format", "kernel.py", place=tmp_path, fresh=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kernel.py").read_bytes() == VID.with_name("after.py").read_bytes()


def test_what_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(VID.read_bytes().replace(b"TL.tile.max", b"TL.tile.unheard_of"))
    (tmp_path / "b.py").write_bytes(b"# tl2npu: skip-file\n" + VID.read_bytes())
    done = codemod(*COMMAND, "a.py", "b.py", place=tmp_path)
    assert "line 47: error TL" in done.stderr
    assert "b.py: tl2npu: skip-file\n" in done.stderr
    assert (tmp_path / "b.py").read_bytes() == b"# tl2npu: skip-file\n" + VID.read_bytes()


def test_settings_of_the_project_hold(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.tl2npu]\nthreads = '1'\n", encoding="utf-8")
    (tmp_path / "a.py").write_bytes(VID.read_bytes())
    codemod(*COMMAND, "a.py", place=tmp_path)
    assert b"threads=1" in (tmp_path / "a.py").read_bytes()
    (tmp_path / "pyproject.toml").write_text("[tool.tl2npu]\nthreds = '1'\n", encoding="utf-8")
    before = (tmp_path / "a.py").read_bytes()
    done = codemod(*COMMAND, "a.py", place=tmp_path)
    assert done.returncode == 1
    assert "unknown key 'threds'" in done.stderr
    assert (tmp_path / "a.py").read_bytes() == before
