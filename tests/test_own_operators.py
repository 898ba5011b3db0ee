"""``[tool.tl2npu.operators]``: what is written is what is written for the operator itself, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.in_process import tl2npu
from tl2npu.languages import check_source, migrate_source
from tl2npu.options import Options
from tl2npu.own_operators import written

COPIES = (
    ("my_lib.load", "T.copy"),
    ("my_lib.ops.store", "T.copy({1}, {0})"),
    ("my_lib.mul", "T.tile.mul({out}, {0}, {by})"),
)
HEAD = """import tilelang
import tilelang.language as T
{imports}


"""
KERNEL = """@tilelang.jit(out_idx=[1])
def {name}(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // block, threads=128) as bx:
            x = T.alloc_shared((block, N), "float32")
            y = T.alloc_fragment((block, N), "float32")
            {load}
            for i, j in T.Parallel(block, N):
                y[i, j] = x[i, j] * 2.0
            {store}

    return main


{name}(256, 64)
"""
LOAD, STORE = "T.copy(X[bx * block, 0], x)", "T.copy(y, Y[bx * block, 0])"


def program(imports: str, load: str = LOAD, store: str = STORE, name: str = "scale") -> str:
    return HEAD.format(imports=imports) + KERNEL.format(name=name, load=load, store=store)


def migrated(text: str, operators: object = COPIES) -> str:
    result = migrate_source(text, "k.py", Options(operators=operators))  # type: ignore[arg-type]
    assert result.old_text == text
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"], result.diagnostics
    assert result.new_text is not None
    return result.new_text


@pytest.mark.parametrize(
    ("imports", "called"),
    [
        ("import my_lib", "my_lib.load"),
        ("import my_lib as ours", "ours.load"),
        ("from my_lib import load", "load"),
        ("from my_lib import load as fetch", "fetch"),
        ("import my_lib.ops", "my_lib.load"),
    ],
)
def test_spellings_of_the_name(imports: str, called: str) -> None:
    assert migrated(program(imports, f"{called}(X[bx * block, 0], x)")) == migrated(program(imports))


@pytest.mark.parametrize(
    "store",
    [
        "ops.store(Y[bx * block, 0], y)",
        "ops.store(\n                Y[bx * block, 0], y\n            )",
        "ops.store(Y[bx * block, 0],\n                      y)",
        "ops.store( # to Y\n                Y[bx * block, 0],\n                y,\n            )",
    ],
)
def test_arguments_in_another_order(store: str) -> None:
    """Lines stay where they are, so that findings and reasons stand on the author's."""
    text = program("from my_lib import ops", store=store)
    plain, found = written(text, COPIES)
    assert plain.count("\n") == text.count("\n")
    assert [(one.name, one.line) for one in found] == [("my_lib.ops.store", text[: text.index(store)].count("\n") + 1)]
    lines = [line for line in migrated(text).split("\n") if "T.copy(" in line]
    assert len(lines) == 2
    assert "".join(migrated(text).split()).count("T.copy(y,Y[bx*block,0])") == 1


def test_named_arguments_and_calls_in_calls() -> None:
    text = program("import my_lib", "my_lib.load(my_lib.mul(X[0, 0], out=X[bx * block, 0], by=2), x)")
    plain, found = written(text, COPIES)
    assert "T.copy(T.tile.mul(X[bx * block, 0], X[0, 0], 2), x)" in plain
    assert len(found) == 2


@pytest.mark.parametrize(
    ("imports", "load"),
    [
        ("import my_lib", "my_lib.mul(X[0, 0], x)"),  # too few arguments
        ("import my_lib", "my_lib.mul(X[0, 0], x, 2)"),  # by place in place of by name
        ("import my_lib", "my_lib.mul(*X)"),
        ("import my_lib", "my_lib.other(X[0, 0], x)"),
        ("import other_lib as my_lib", "my_lib.load(X[0, 0], x)"),
        ("import my_lib\nmy_lib = None", "my_lib.load(X[0, 0], x)"),
        ("def load(a, b):\n    pass", "load(X[0, 0], x)"),
        ("from .my_lib import load", "load(X[0, 0], x)"),
    ],
)
def test_other_calls_stay(imports: str, load: str) -> None:
    text = program(imports, load)
    assert written(text, COPIES) == (text, [])


def test_host_code_stays() -> None:
    text = program("import my_lib", "my_lib.load(X[bx * block, 0], x)") + "my_lib.load(1, 2)\n"
    assert migrated(text).endswith("\nmy_lib.load(1, 2)\n")


def test_a_refused_kernel_keeps_its_text() -> None:
    good = program("import my_lib", "my_lib.load(X[bx * block, 0], x)")
    extern = 'T.call_extern("handle", "mine", x[0, 0])\n            '
    bad = KERNEL.format(name="other", load="my_lib.load(X[bx * block, 0], x)", store=extern + STORE)
    result = migrate_source(f"{good}\n\n{bad}", "k.py", Options(operators=COPIES))
    assert [(kernel.name, kernel.disposition) for kernel in result.kernels] == [
        ("scale.main", "migrated"),
        ("other.main", "refused"),
    ]
    assert result.new_text is not None
    assert result.new_text.count("my_lib.load(") == 1
    assert result.new_text.endswith(bad)
    assert [(change.code, change.line) for change in result.changes if "my_lib" in change.message] == [("TL117", 13)]
    alone = migrate_source(program("import my_lib") + bad, "k.py", Options())  # the reason is that of the operator
    assert [d.code for d in result.diagnostics if d.severity == "error"] == [
        d.code for d in alone.diagnostics if d.severity == "error"
    ]
    only = migrate_source(HEAD.format(imports="import my_lib") + bad, "k.py", Options(operators=COPIES))
    assert not only.changed


def test_the_check_reads_it_too(tmp_path: Path) -> None:
    """A fault behind the wrapper is found on the author's line."""
    text = (Path(__file__).resolve().parent.parent / "docs" / "debugging" / "scale_rows.py").read_text(encoding="utf-8")
    found = check_source(text, "k.py", Options()).diagnostics
    wrapped = text.replace("T.copy(", "my_lib.load(").replace("import tilelang\n", "import tilelang, my_lib\n", 1)
    assert wrapped.count("my_lib.load(") > 0
    result = check_source(wrapped, "k.py", Options(operators=COPIES))
    assert result.old_text == wrapped
    assert [(d.code, d.line) for d in result.diagnostics] == [(d.code, d.line) for d in found]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('"copy" = "T.copy"', "is not the dotted name of a function"),
        ('"my_lib.copy" = "copy"', "is not an operator"),
        ('"my_lib.copy" = "T.copy(({0}))"', "is not an operator"),
        ('"my_lib.copy" = 3', "must be a table such as"),
    ],
)
def test_wrong_entries(tmp_path: Path, table: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.tl2npu.operators]\n{table}\n")
    (tmp_path / "k.py").write_text(program("import my_lib"))
    done = tl2npu("migrate", "--check", "k.py", cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (2, True)


def test_the_table_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tl2npu.operators]\n"my_lib.load" = "T.copy"\n')
    (tmp_path / "k.py").write_text(program("import my_lib", "my_lib.load(X[bx * block, 0], x)"))
    done = tl2npu("migrate", "--check", "--explain", "k.py", cwd=tmp_path)
    assert "line 13: TL117 `my_lib.load` is `T.copy` by [tool.tl2npu.operators]" in done.stdout
    (tmp_path / "pyproject.toml").unlink()
    assert "refused" in tl2npu("migrate", "--check", "k.py", cwd=tmp_path).stdout
