"""Macros, functions that make macros, and constants from other modules of the repository."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.across.support import CALL, LIBRARY, SIZES, kernel, library, migrated, refused, repository, result_of
from tests.passes.support import vector_file
from tl2npu.across.symbols import Constant, Symbols
from tl2npu.across.tables import digest_of

BARE = "from ops.lib import ROWS, make_add, scaled"


def test_they_are_read_like_those_of_the_file(tmp_path: Path) -> None:
    root = library(tmp_path, {"ops/k.py": kernel(BARE)})
    new = migrated(root / "ops/k.py", CALL)
    assert "a[i, j] = a[i, j] * 0.5" in new
    assert "a[i, j] = a[i, j] + (2.0 + 1.0)" in new
    assert "for i, j in T.Parallel(ROWS, 64):" in new  # the file's own name for the language, and for the size
    assert "from ops.lib import ROWS\n" in new  # the others have no use any more
    assert "make_add" not in new


@pytest.mark.parametrize(
    ("imports", "prefix", "kept"),
    [
        ("import ops.lib as lib", "lib.", "import ops.lib as lib\n"),
        ("import ops.lib", "ops.lib.", "import ops.lib\n"),
        ("from ops import lib", "lib.", "from ops import lib\n"),
        ("from . import lib", "lib.", "from . import lib\n"),
        ("from .lib import ROWS, make_add, scaled", "", "from .lib import ROWS\n"),
        ("from .lib import *", "", "from .lib import *\n"),
        ("from .names import *", "", "from .names import *\n"),
        ("from .names import ROWS, make_add, scaled", "", "from .names import ROWS\n"),
        ("from lib import ROWS, make_add, scaled", "", "from lib import ROWS\n"),
    ],
)
def test_ways_to_import(tmp_path: Path, imports: str, prefix: str, kept: str) -> None:
    names = "from .lib import ROWS, make_add\nfrom .lib import scaled\n"
    root = library(tmp_path, {"ops/k.py": kernel(imports, prefix), "ops/names.py": names})
    new = migrated(root / "ops/k.py")
    assert kept in new
    assert f"for i, j in T.Parallel({prefix}ROWS, 64):" in new
    assert "scaled(" not in new


def test_another_name(tmp_path: Path) -> None:
    imports = "from ops.lib import ROWS as rows_of_tile, make_add as adding, scaled as shrunk"
    text = kernel(BARE).replace(BARE, imports)
    text = text.replace("ROWS,", "rows_of_tile,").replace("= make_add(", "= adding(").replace("scaled(a", "shrunk(a")
    text = (
        text.replace("ROWS)", "rows_of_tile)")
        .replace("bx * ROWS", "bx * rows_of_tile")
        .replace("import rows_of_tile, make_add", "import ROWS, make_add")
    )
    text = text.replace("import rows_of_tile as", "import ROWS as")
    root = library(tmp_path, {"ops/k.py": text})
    new = migrated(root / "ops/k.py", CALL)
    assert "T.Parallel(rows_of_tile, 64)" in new


def test_either_import_of_a_try(tmp_path: Path) -> None:
    imports = "try:\n    from .lib import ROWS, make_add, scaled\nexcept ImportError:\n    "
    imports += "from lib import ROWS, make_add, scaled"
    root = library(tmp_path, {"ops/k.py": kernel(imports)})
    new = migrated(root / "ops/k.py")
    assert "except ImportError:\n    from lib import ROWS, make_add, scaled\n" in new


def test_imports_inside_a_factory(tmp_path: Path) -> None:
    text = kernel("from ops.lib import ROWS").replace(
        "    add =", "    from ops.lib import make_add, scaled\n\n    add ="
    )
    root = library(tmp_path, {"ops/k.py": text})
    assert "make_add" not in migrated(root / "ops/k.py", CALL)


@pytest.mark.parametrize("folder", ["src/ops", "python/ops", "deep/er"])
def test_layouts_of_repositories(tmp_path: Path, folder: str) -> None:
    module = folder.removeprefix("src/").removeprefix("python/").replace("/", ".")
    files = {f"{folder}/lib.py": LIBRARY, f"{folder}/sizes.py": SIZES}  # namespace packages
    imports = f"from {module}.lib import ROWS, make_add, scaled"
    root = repository(tmp_path, {**files, "tests/test_k.py": kernel(imports)})
    migrated(root / "tests/test_k.py")


def test_two_modules_of_one_name_are_not_told_apart(tmp_path: Path) -> None:
    files = {"src/lib.py": LIBRARY, "lib.py": LIBRARY, "tests/k.py": kernel("from lib import ROWS, make_add, scaled")}
    root = repository(tmp_path, files)
    assert [code for code, _, _ in refused(root / "tests/k.py")] == ["TL903"]


def test_macros_of_macros(tmp_path: Path) -> None:
    text = LIBRARY.replace("x[i, j] = x[i, j] * SCALE", "x[i, j] = times(x[i, j], SCALE)")
    text += "\n\ndef times(x, y):\n    return tl.max(x, x) * y\n"
    root = library(tmp_path, {"ops/lib.py": text, "ops/k.py": kernel(BARE)})
    assert "a[i, j] = T.max(a[i, j], a[i, j]) * 0.5" in migrated(root / "ops/k.py", CALL).replace("tl.", "T.")


def test_modules_that_import_each_other(tmp_path: Path) -> None:
    sizes = "from .lib import SCALE\nfrom .k import factory\n\nHALF = 16\nLOOP = AGAIN\nAGAIN = LOOP\n"
    root = library(tmp_path, {"ops/sizes.py": sizes, "ops/k.py": kernel(BARE + "\nfrom .sizes import LOOP")})
    migrated(root / "ops/k.py")


@pytest.mark.parametrize(
    "change",
    [
        "ROWS += 1",
        "if ROWS:\n    ROWS = 16",
        "def change():\n    global ROWS\n    ROWS = 16",
        "for ROWS in (16, 32):\n    pass",
    ],
)
def test_what_may_have_another_value_is_unknown(tmp_path: Path, change: str) -> None:
    root = library(tmp_path, {"ops/other.py": f"ROWS = 32\nSAME = ROWS\n{change}\n"})
    symbols = Symbols()
    assert symbols.defined(root / "ops/lib.py", "ROWS") == Constant(32)
    assert symbols.defined(root / "ops/other.py", "ROWS") is None
    assert symbols.defined(root / "ops/other.py", "SAME") is None


def test_a_constant_decides_what_is_written(tmp_path: Path) -> None:
    """Half of seven rows is no row count for a vector core: two of them only where the constant is even."""
    text = kernel(BARE)
    even = library(tmp_path / "even", {"ops/k.py": text})
    odd = library(
        tmp_path / "odd",
        {"ops/k.py": text, "ops/sizes.py": "HALF = 7 / 2\n", "ops/lib.py": LIBRARY.replace("HALF * 2", "7")},
    )
    assert [k.target for k in result_of(even / "ops/k.py").kernels] == ["developer"]
    assert [k.target for k in result_of(odd / "ops/k.py").kernels] == ["developer-threads1"]


def test_an_argument_that_changes_later_is_not_written_out(tmp_path: Path) -> None:
    text = (
        kernel(BARE)
        .replace("make_add(2.0, ROWS)", "make_add(dtype, ROWS)")
        .replace("    @T.prim_func", "    dtype = 3.0\n\n    @T.prim_func")
    )
    root = library(tmp_path, {"ops/k.py": text})
    assert [code for code, _, _ in refused(root / "ops/k.py")] == ["TL903"]


def test_host_functions_and_factories_stay_outside(tmp_path: Path) -> None:
    other = kernel(BARE).replace("def factory", "def other")
    helper = "import torch\n\n\ndef prepared(x):\n    return torch.empty(x)\n"
    text = kernel(f"{BARE}\nfrom ops.other import other\nfrom ops.host import prepared")
    text = text.replace("    add =", "    other(M), prepared(M)\n    add =")
    root = library(tmp_path, {"ops/k.py": text, "ops/other.py": other, "ops/host.py": helper})
    found = result_of(root / "ops/k.py")
    assert [k.name for k in found.kernels] == ["factory.main"]
    assert "other(M), prepared(M)" in (found.new_text or "")


def test_a_macro_that_needs_what_the_file_does_not_import(tmp_path: Path) -> None:
    text = LIBRARY.replace("* SCALE", "* math.pi").replace("import tilelang", "import math\n\nimport tilelang", 1)
    root = library(tmp_path, {"ops/lib.py": text, "ops/k.py": kernel(BARE), "ops/m.py": kernel("import math\n" + BARE)})
    assert [code for code, _, _ in refused(root / "ops/k.py")] == ["TL903"]
    assert "a[i, j] * math.pi" in migrated(root / "ops/m.py", CALL)


MACRO = """import tilelang.language as T


@T.macro
def twice(x):
    for i, j in T.Parallel(16, 64):
        x[i, j] = x[i, j] * 2.0
"""


def test_a_macro_that_would_have_to_change(tmp_path: Path) -> None:
    """Its 16 rows are those of one vector core: it is written in place, as its file is another's as well."""
    body = 'a = T.alloc_ub((16, 64), "float32")\nT.copy(A[cid * 32 + vid * 16, 0], a)\ntwice(a)\n'
    text = vector_file(body + "T.copy(a, O[cid * 32 + vid * 16, 0])\n")
    text = text.replace("import torch\n", "import torch\nfrom lib import twice\n")
    root = repository(tmp_path, {"lib.py": MACRO, "k.py": text})
    new = result_of(root / "k.py").new_text or ""
    assert "T.Parallel(32, 64)" in new
    assert "twice" not in new
    assert (root / "lib.py").read_text() == MACRO


def test_an_allocation_that_would_have_to_change(tmp_path: Path) -> None:
    helper = 'import tilelang.language as T\n\n\ndef tile():\n    return T.alloc_ub((16, 64), "float32")\n'
    text = vector_file("a = tile()\nT.copy(A[cid * 32 + vid * 16, 0], a)\nT.copy(a, O[cid * 32 + vid * 16, 0])\n")
    text = text.replace("import torch\n", "import torch\nfrom lib import tile\n")
    root = repository(tmp_path, {"lib.py": helper, "k.py": text})
    found = result_of(root / "k.py")
    told = [(item.code, item.line) for item in found.diagnostics if item.code == "TL914"]
    assert told == [("TL914", 2)]
    (message,) = (item.message for item in found.diagnostics if item.code == "TL914")
    assert "line 5 of" in message
    assert "lib.py" in message


def test_results_name_the_files_that_they_rest_on(tmp_path: Path) -> None:
    root = library(tmp_path, {"ops/k.py": kernel(BARE), "ops/unrelated.py": "X = 1\n", "ops/plain.py": "import os\n"})
    depends = dict(result_of(root / "ops/k.py").depends)
    assert depends == {
        (root / name).as_posix(): digest_of((root / name).read_bytes()) for name in ("ops/lib.py", "ops/sizes.py")
    }
    assert result_of(root / "ops/plain.py").depends == ()


def test_broken_and_huge_modules_are_as_good_as_none(tmp_path: Path) -> None:
    broken = library(tmp_path / "a", {"ops/lib.py": "def (\n", "ops/k.py": kernel(BARE)})
    huge = library(tmp_path / "b", {"ops/lib.py": LIBRARY + "# " + "x" * (1 << 20), "ops/k.py": kernel(BARE)})
    for root in (broken, huge):
        assert [code for code, _, _ in refused(root / "ops/k.py")] == ["TL903"]


def test_the_second_run_changes_nothing(tmp_path: Path) -> None:
    root = library(tmp_path, {"ops/k.py": kernel(BARE)})
    (root / "ops/k.py").write_text(migrated(root / "ops/k.py"))
    found = result_of(root / "ops/k.py")
    assert [k.disposition for k in found.kernels] == ["unchanged"]
    assert found.new_text == found.old_text


def test_two_factories_that_make_one_macro(tmp_path: Path) -> None:
    """Both call the maker with the same arguments, so that two grafts have one text."""
    text = kernel(BARE)
    twice = text + "\n\n" + text[text.index("@tilelang.jit") :].replace("def factory", "def factory_again")
    assert migrated(library(tmp_path, {"ops/k.py": twice}) / "ops/k.py").count("* 0.5") == 2


def test_a_function_that_imports_the_language(tmp_path: Path) -> None:
    loader = """
        def load():
            try:
                import tilelang
                import tilelang.language as T
            except ImportError as error:
                raise RuntimeError("no TileLang") from error
            return tilelang, T
        """
    text = """
        from .lazy import load


        def build(M):
            tilelang, T = load()

            @tilelang.jit(out_idx=[-1])
            def factory(M):
                @T.prim_func
                def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
                    with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
                        a = T.alloc_shared((32, 64), "float32")
                        T.copy(A[bx * 32, 0], a)
                        T.copy(a, B[bx * 32, 0])

                return main

            return factory(M)
        """
    root = repository(tmp_path, {"ops/__init__.py": "", "ops/lazy.py": loader, "ops/k.py": text})
    (kernel,) = result_of(root / "ops/k.py").kernels
    assert kernel.disposition == "migrated"
    other = loader.replace("return tilelang, T", "return T, tilelang")
    (root / "ops/lazy.py").write_text(textwrap.dedent(other), encoding="utf-8")
    assert result_of(root / "ops/k.py").kernels == ()  # `T` is something else
