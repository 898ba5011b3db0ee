"""What an editor is told about a file."""

from __future__ import annotations

import ast
from pathlib import Path

from tl2npu.lsp.look import look, migrate_one
from tl2npu.migration import migrate_text
from tl2npu.options import Options

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
GEMM = (FIXTURES / "workspace" / "gemm_leaky_relu" / "before.py").read_text(encoding="utf-8")
DONE = (FIXTURES / "workspace" / "gemm_leaky_relu" / "after.py").read_text(encoding="utf-8")
PATH = str(FIXTURES / "a.py")


def two() -> str:
    """The kernel twice, under two names."""
    factory = GEMM.split("\n\n\n")[1]
    return GEMM.replace(
        factory, factory + "\n\n\n" + factory.replace("gemm_leaky", "second").replace("kernel", "other")
    )


def test_a_kernel_that_can_be_migrated() -> None:
    view = look(GEMM, PATH)
    (kernel,) = view.kernels
    lines = GEMM.split("\n")
    assert "def kernel" in lines[kernel.result.line - 1]
    assert lines[kernel.span[0] - 1] == "@tilelang.jit("
    assert lines[kernel.span[1] - 1] == "    return kernel"
    assert view.new_text == migrate_text(GEMM, PATH, Options()).new_text
    assert not view.faults


def test_a_kernel_in_developer_mode_is_checked() -> None:
    assert look(DONE, PATH).faults == ()
    broken = DONE.replace("init=(t == 0)", "init=False")
    assert broken != DONE
    view = look(broken, PATH)
    assert view.kernels == ()
    assert {item.code for item in view.faults} == {"TL898"}
    assert not {item.code for item in view.obstacles} & {"TL898"}


def test_one_kernel_of_two() -> None:
    text = two()
    view = look(text, PATH)
    first, second = view.kernels
    for kernel, other in ((first, second), (second, first)):
        place = (None, kernel.result.line)
        assert view.migrated(place) is None
        new = migrate_one(text, PATH, place, view.places)
        assert new != text
        ast.parse(new)
        (left,) = look(new, PATH).kernels
        assert left.result.name == other.result.name
        kept = "\n".join(text.split("\n")[other.span[0] - 1 : other.span[1]])
        assert kept in new
        known = look(new, PATH).migrated((None, left.result.line))  # the only one that is left: the whole file
        assert known == migrate_one(new, PATH, (None, left.result.line), look(new, PATH).places)


def test_files_without_kernels_cost_nothing() -> None:
    assert look("import torch\n", PATH) == look("", PATH)
    assert look("# tl2npu: skip-file\n" + GEMM, PATH).kernels == ()


def test_what_is_being_typed() -> None:
    view = look(GEMM.replace("def gemm_leaky(", "def gemm_leaky(("), PATH)
    assert [item.code for item in view.obstacles] == ["TL901"]
    assert view.problem is None


def test_the_configuration_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.tl2npu]\nthreds = '1'\n", encoding="utf-8")
    problem = look(GEMM, str(tmp_path / "a.py")).problem
    assert problem is not None
    assert "unknown key 'threds'" in problem
    (tmp_path / "pyproject.toml").write_text("[tool.tl2npu]\nthreads = '1'\n", encoding="utf-8")
    assert look(GEMM, str(tmp_path / "a.py")).kernels[0].result.target == "developer-threads1"
