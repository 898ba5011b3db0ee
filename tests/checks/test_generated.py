"""TL734 to TL738: what is refused late, or becomes invalid or wrong text; verdicts and texts of 95acbd7f."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checks.support import LOAD, ONE, STORE, TILES, findings, source
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options

EXTRA = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), S: T.Tensor((8,), "{}")'
LOOP = "for i in T.serial(n):\n    T.tile.mul(a, a, 2.0)\n"
VAR = "n = T.alloc_var('int32')\n"


def found(body: str, dtype: str = "int32", jit: str = "out_idx=[1]") -> list[str]:
    text = source(f"{TILES}{LOAD}{body}T.tile.exp(b, a)\n{STORE}", params=EXTRA.format(dtype), launch=ONE, jit=jit)
    return [f.code for f in findings(text) if f.code in ("TL736", "TL737", "TL738")]


def test_tensors_of_bool() -> None:
    assert found("", "bool") == ["TL736"]
    assert found("", "uint8") == []
    assert found("m = T.alloc_ub((64,), 'bool')\n") == []


@pytest.mark.parametrize(
    "body",
    [
        VAR + "n = T.if_then_else(cid > 2, 1, 2)\n" + LOOP,
        VAR + "n = 3 + T.if_then_else(cid > 2, S[1], 2)\n" + LOOP,
        VAR + "m = T.if_then_else(cid > 2, 1, 2)\nn = m\n" + LOOP,
        VAR + "n = 1\nn += T.if_then_else(cid > 2, 1, 2)\n" + LOOP,
        "n = T.alloc_var('int32', init=T.if_then_else(cid > 2, 1, 2))\n" + LOOP,
        "a[0, 0] = T.if_then_else(cid > 2, 1.0, 2.0)\n",
        "a[0, 0] = float('nan')\n",  # CUDART_NAN_F, which nothing defines
        "for k in T.serial(8):\n    a[0, k] = A[S[k], 0]\n",  # the compiler's own choice: is S[k] below 256?
    ],
)
def test_declarations_in_the_middle_of_a_statement(body: str) -> None:
    assert found(body) == ["TL737"]


@pytest.mark.parametrize(
    "body",
    [
        "for k in T.serial(8):\n    value = A[S[k], 0]\n    a[0, k] = value\n",
        "for k in T.serial(8):\n    a[0, k] = A[cid * 32 + k, 0]\n",
        "a[0, 0] = A[S[1], 0]\n",
        "n = T.if_then_else(cid > 2, 1, 2)\n" + LOOP,
        "n = T.if_then_else(cid > 2, S[1], 2)\n" + LOOP,
        VAR + "if cid > 2:\n    n = 1\nelse:\n    n = 2\n" + LOOP,
        VAR + "n = T.max(cid, 2)\n" + LOOP,
        "T.tile.fill(a, T.if_then_else(cid > 2, 1.0, 2.0))\n",
    ],
)
def test_declarations_in_front_of_a_statement(body: str) -> None:
    assert found(body) == []


def test_packed_masks() -> None:
    packed = "m = T.alloc_ub((256,), 'uint8')\nT.tile.compare(m, a, 1.0, 'LT')\n"
    assert found(packed, jit="out_idx=[1], target='pto'") == ["TL738"]
    assert found(packed, jit="out_idx=[1], target='ascendc'") == []
    rows = "m = T.alloc_ub((32, 32), 'uint8')\nT.tile.compare(m, a, 1.0, 'LT')\n"
    assert found(rows, jit="out_idx=[1], target='pto'") == []


HEAD = "import tilelang\nimport tilelang.language as T\n{}\n\n"
KERNEL = """
@tilelang.jit(out_idx=[1]{jit})
def {name}(M{arg}):
    @T.prim_func
    def main(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32")):
        with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
            x = T.alloc_shared((64, 64), "float32")
            T.copy(X[bx * 64, 0], x)
            {body}
            T.copy(x, Y[bx * 64, 0])

    return main

"""
GOOD = KERNEL.format(jit="", name="good", arg="", body="T.clear(x)")


@pytest.mark.parametrize(
    ("head", "settings", "name"),
    [
        ("D = T.bfloat16", {}, "T.bfloat16"),
        ("", {"arg": ", d=T.float", "body": "T.shfl_xor(x[0, 0], d.bits)"}, "T.float"),
        ("from tilelang.tileop.base import GemmWarpPolicy", {}, "tilelang.tileop.base"),
        ("import tilelang.tileop", {}, "tilelang.tileop"),
        ("from tilelang.language import alloc_global", {}, "tilelang.language.alloc_global"),
    ],
)
def test_files_that_cannot_be_imported(head: str, settings: dict[str, str], name: str) -> None:
    bad = KERNEL.format(**{"jit": "", "name": "bad", "arg": "", "body": "T.shfl_xor(x[0, 0], 1)", **settings})
    result = migrate_text(HEAD.format(head) + GOOD + bad, "k.py", Options())
    assert sorted(kernel.disposition for kernel in result.kernels) == ["migrated", "refused"]
    said = [item.message for item in result.diagnostics if item.code == "TL734"]
    assert said == [f"`{name}` does not exist in Ascend TileLang, so this file cannot be imported"]


def test_what_a_refused_kernel_needs_is_written_so_that_an_npu_can_import_it() -> None:
    """Element types are strings on GPUs as well, and so are keys; both get their hints from quoted annotations."""
    settings = {"arg": ", d: T.dtype = T.bfloat16, e: 'T.dtype' = 1", "body": "T.shfl_xor(x[0, 0], 1)", "name": "bad"}
    head = "from tilelang.tools.cuda import iket"
    jit = ", pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}"
    late = 'def show():\n    """Shows."""\n    return iket.event_table()\n'
    result = migrate_text(HEAD.format(head) + GOOD + KERNEL.format(jit=jit, **settings) + late, "k.py", Options())
    assert {item.code for item in result.diagnostics if item.severity == "error"} == {"TL184"}
    new = result.new_text or ""
    assert ", d: \"T.dtype\" = \"bfloat16\", e: 'T.dtype' = 1):\n" in new
    assert ', pass_configs={"tl.enable_fast_math": True})\n' in new
    assert 'def show():\n    """Shows."""\n    from tilelang.tools.cuda import iket\n    return iket' in new
    assert new.count("iket import") + new.count("import iket") == 1
    assert "from tilelang.tools" not in new.split("def good")[0]


def test_files_that_can_be_imported() -> None:
    bad = KERNEL.format(jit="", name="bad", arg="", body="T.shfl_xor(x[0, 0], 1)")
    late = "def f():\n    return T.bfloat16\n"
    result = migrate_text(HEAD.format("") + GOOD + bad + late, "k.py", Options())
    assert "TL734" not in {item.code for item in result.diagnostics}


def test_a_refused_kernel_in_the_same_factory() -> None:
    inner = GOOD.replace("    return main\n", GOOD[GOOD.index("    @T") :].replace("main", "other"), 1)
    bad = inner.replace("T.clear(x)", "T.shfl_xor(x[0, 0], 1)", 1)
    for text, expected in ((inner, []), (bad, ["good.other"])):
        result = migrate_text(HEAD.format("") + text, "k.py", Options())
        assert [item.kernel for item in result.diagnostics if item.code == "TL735"] == expected


def test_check_says_it_of_a_file_that_was_migrated() -> None:
    bad = "D = T.bfloat16\n" + KERNEL.format(jit="", name="bad", arg="", body="T.shfl_xor(x[0, 0], 1)")
    new = migrate_text(HEAD.format("") + GOOD + bad, "k.py", Options()).new_text
    assert "TL734" in {item.code for item in check_text(new, "k.py", Options()).diagnostics if item.severity == "error"}


def test_check_says_it_of_a_factory_with_two_languages() -> None:
    npu = GOOD.replace("threads=128", "threads=1, is_npu=True")
    inner = npu.replace("    return main\n", GOOD[GOOD.index("    @T") :].replace("main", "other"), 1)
    found = check_text(HEAD.format("") + inner, "k.py", Options()).diagnostics
    assert [(item.kernel, item.severity) for item in found if item.code == "TL735"] == [("good.main", "error")]
    assert "TL735" not in {item.code for item in check_text(HEAD.format("") + npu, "k.py", Options()).diagnostics}


def test_what_another_file_imports_stays(tmp_path: Path) -> None:
    helper = "@T.macro\ndef _twice(x):\n    for i, j in T.Parallel(64, 64):\n        x[i, j] = x[i, j] * 2.0\n\n"
    text = HEAD.format("") + helper + KERNEL.format(jit="", name="good", arg="", body="_twice(x)")
    for imported in (False, True):
        folder = tmp_path / str(imported)
        folder.mkdir()
        (folder / "pyproject.toml").write_text("")
        (folder / "kernels.py").write_text(text)
        if imported:
            (folder / "more.py").write_text("from kernels import _twice\n")
        new = migrate_text(text, str(folder / "kernels.py"), Options()).new_text
        assert new is not None
        assert ("def _twice(x):" in new) == imported


EXPERT = """
@tilelang.jit(out_idx=[1]{jit})
def {name}(M):
    @T.prim_func
    def main(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32")):
        with T.Kernel(T.ceildiv(M, 64), is_npu=True) as (cid, vid):
            x = T.alloc_ub((32, 64), "float32")
            T.copy(X[cid * 64 + vid * 32, 0], x)
            {body}
            T.copy(x, Y[cid * 64 + vid * 32, 0])

    return main

"""
AUTO = "{{{}PassConfigKey.TL_ASCEND_AUTO_SYNC: True}}"
STAYS = EXPERT.format(jit="{}", name="stays", body="T.tile.createvecindex(x, 0)")
GOES = EXPERT.format(jit="{}", name="goes", body="T.tile.add(x, x, x)")


def to_npuir(text: str, path: str = "k.py") -> tuple[str, list[str]]:
    result = migrate_text(text, path, Options(target="npuir"))
    assert result.new_text is not None
    assert "migrated" in {kernel.disposition for kernel in result.kernels}
    return result.new_text, [item.message for item in result.diagnostics if item.code == "TL734"]


@pytest.mark.parametrize(
    ("head", "key"),
    [
        ("", "tilelang."),
        ("from tilelang import PassConfigKey\n", ""),
        ("from tilelang.transform import PassConfigKey as Key\n", "Key"),
        ("import tilelang.transform\n", "tilelang.transform."),
    ],
)
def test_keys_of_a_kernel_that_stays_beside_one_for_npuir(head: str, key: str) -> None:
    auto = AUTO.format(key).replace("KeyPassConfigKey", "Key")
    given = f"{head}OPTIONS = {auto}\n"
    jit = ", pass_configs=OPTIONS"
    name = auto[1 : auto.index(":")]
    text = HEAD.format(given) + GOES.format(jit) + STAYS.format(jit)
    new, said = to_npuir(text)
    assert said == [f"`{name}` does not exist in TileLang for AscendNPU IR, so this file cannot be imported"]
    assert "OPTIONS = " in new
    checked = check_text(new, "k.py", Options(target="npuir")).diagnostics
    assert [item.message for item in checked if item.code == "TL734"] == said
    assert "TL734" not in {item.code for item in check_text(text, "k.py", Options()).diagnostics}
    direct = HEAD.format(head) + GOES.format("") + STAYS.format(f", pass_configs={auto}")
    assert to_npuir(direct)[1] == said


@pytest.mark.parametrize(
    ("given", "stays"),
    [
        (f"OTHER = {AUTO.format('tilelang.')}\n", False),
        (f"OTHER: dict = {AUTO.format('tilelang.')}\n", False),
        (f"OTHER = {AUTO.format('tilelang.')}\n__all__ = ['OTHER']\n", True),
        (f"OTHER = {AUTO.format('tilelang.')}\nprint(len(OTHER))\n", True),
        (f"OTHER = {AUTO.format('tilelang.').replace('True', 'print(1)')}\n", True),
    ],
)
def test_keys_that_nothing_uses_beside_a_kernel_for_npuir(given: str, stays: bool) -> None:
    new, said = to_npuir(HEAD.format(given) + GOES.format(""))
    assert ("TL_ASCEND_AUTO_SYNC" in new, bool(said)) == (stays, stays)
    result = migrate_text(HEAD.format(given) + GOES.format(""), "k.py", Options())
    assert "OTHER" in (result.new_text or "")


def test_keys_that_npuir_has_stay() -> None:
    given = "OTHER = {tilelang.PassConfigKey.TIR_NOALIAS: True}\nMORE = {'tl.ascend_auto_sync': True}\n"
    new, said = to_npuir(HEAD.format(given) + GOES.format(""))
    assert given in new
    assert said == []
    own = "OWN = {tilelang.PassConfigKey.NPUIR_ENABLE_AUTO_MULTI_BUFFER: True}\n"
    assert to_npuir(HEAD.format(own) + GOES.format(""))[1] == []


@pytest.mark.parametrize("imported", [False, True])
def test_keys_that_another_file_imports(tmp_path: Path, imported: bool) -> None:
    text = HEAD.format("OTHER = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}\n") + GOES.format("")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "kernels.py").write_text(text)
    if imported:
        (tmp_path / "more.py").write_text("from kernels import OTHER\n")
    new, said = to_npuir(text, str(tmp_path / "kernels.py"))
    assert ("OTHER" in new, bool(said)) == (imported, imported)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("from tilelang.profiler import do_bench", "tilelang.profiler.do_bench"),
        ("from tilelang.carver.arch import CUDA", "tilelang.carver.arch"),
        ("import tilelang.carver.arch as arch", "tilelang.carver.arch"),
        ("from tilelang import JITKernel", "tilelang.JITKernel"),
        ("def bench(kernel: tilelang.JITKernel):\n    return kernel", "tilelang.JITKernel"),
        ("def build() -> tilelang.JITKernel:\n    return None", "tilelang.JITKernel"),
        ("bench = tilelang.profiler.do_bench", "tilelang.profiler.do_bench"),
    ],
)
def test_names_that_npuir_alone_does_not_have(head: str, name: str) -> None:
    text = HEAD.format(head) + GOES.format("")
    said = [f"`{name}` does not exist in TileLang for AscendNPU IR, so this file cannot be imported"]
    assert to_npuir(text)[1] == said
    result = migrate_text(text, "k.py", Options())
    assert "TL734" not in {item.code for item in result.diagnostics}


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("from tilelang.tools.cuda import iket", "tilelang.tools.cuda"),
        ("from tilelang.tools import cuda", "tilelang.tools.cuda"),
        ("from tilelang.language.fp8 import determine_fp8_type", "tilelang.language.fp8"),
        ("from tilelang.layout.cute import Layout", "tilelang.layout.cute"),
        ("from tilelang.layout import make_wgmma_swizzled_layout", "tilelang.layout.make_wgmma_swizzled_layout"),
        ("from tilelang import tileop", "tilelang.tileop"),
        ("policy = tilelang.tileop.GemmWarpPolicy", "tilelang.tileop"),
        ("kernels = tilelang.par_compile([])", "tilelang.par_compile"),
    ],
)
def test_names_that_neither_branch_has(head: str, name: str) -> None:
    """Each of these names was asked of both: no such module, no such attribute."""
    text = HEAD.format(head) + GOES.format("")
    said = "`{}` does not exist in {}, so this file cannot be imported"
    assert to_npuir(text)[1] == [said.format(name, "TileLang for AscendNPU IR")]
    checked = check_text(text, "k.py", Options()).diagnostics
    assert [item.message for item in checked if item.code == "TL734"] == [said.format(name, "Ascend TileLang")]


@pytest.mark.parametrize(
    ("head", "left"),
    [
        ("from tilelang.tools.cuda import iket\n", ""),
        ("from tilelang.tools import cuda\n", ""),
        ("from tilelang.tools import cuda as c\n", ""),
        ("import tilelang.tools.cuda as c\n", ""),
        ("from tilelang.layout import Layout, make_wgmma_swizzled_layout\n", "from tilelang.layout import Layout\n"),
        ("from tilelang.tools import cuda\nOWN = {'a': cuda}\n", None),
        ("from tilelang.tools import cuda\n__all__ = ['cuda']\n", None),
        ("try:\n    from tilelang.tools import cuda\nexcept ImportError:\n    cuda = None\n", None),
        ("from .tilelang.tools import cuda\n", None),
        ("from tilelang.layout import Layout\n", None),
    ],
)
def test_imports_that_fail_and_nothing_uses_go(head: str, left: str | None) -> None:
    result = migrate_text(HEAD.format(head) + GOOD, "k.py", Options())
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    assert (result.new_text or "").startswith(HEAD.format(head if left is None else left))
    if left is not None:
        assert "TL734" not in {item.code for item in result.diagnostics}
        assert "TL124" in {change.code for change in result.changes}


@pytest.mark.parametrize(
    "head",
    [
        "from tilelang.layout import make_swizzled_layout, Layout",
        "from tilelang.tools import plot_layout",
        "from tilelang.autotuner import autotune",
        "from tilelang.engine.callback import register_cuda_postproc_callback",
        "from tilelang.utils.tensor import get_tensor_supply",
    ],
)
def test_names_that_both_branches_have(head: str) -> None:
    text = HEAD.format(head) + GOES.format("")
    assert to_npuir(text)[1] == []
    assert "TL734" not in {item.code for item in check_text(text, "k.py", Options()).diagnostics}


def test_profilers_that_npuir_has() -> None:
    late = "from tilelang.profiler import Profiler\ndef f():\n    from tilelang.profiler import do_bench\n"
    assert to_npuir(HEAD.format(late) + GOES.format(""))[1] == []


def test_tiles_of_64_bits() -> None:
    body = "m = T.alloc_ub((64,), 'int64')\nfor i in T.serial(64):\n    m[i] = i\n"
    for target, codes in (("pto", ["TL710"]), ("ascendc", [])):
        text = source(
            f"{TILES}{LOAD}{body}{STORE}",
            params=EXTRA.format("int32"),
            launch=ONE,
            jit=f"out_idx=[1], target='{target}'",
        )
        assert [f.code for f in findings(text) if f.code == "TL710"] == codes


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("T.tile.sub(b, a, -0.25)", True),
        ("T.tile.sub(b, a, low)", True),
        ("T.tile.sub(b, a, high)", False),
        ("T.tile.add(b, a, -0.25)", False),
        ("for i, j in T.Parallel(32, 64):\n    b[i, j] = a[i, j] - low", True),
        ("for i, j in T.Parallel(32, 64):\n    b[i, j] = a[i, j] * a[i, j] - (-0.25)", True),
        ("for i, j in T.Parallel(32, 64):\n    b[i, j] = a[i, j] - high", False),
        ("s = A[0, 0]\nT.tile.sub(b, a, -s)", False),
        ("for i in T.serial(32):\n    b[i, 0] = a[i, 0] - (-0.25)", False),
    ],
)
def test_a_negative_number_is_not_subtracted(body: str, found: bool) -> None:
    """Whether the generated text has `--` in front of digits, read for each line (95acbd7f)."""
    text = source(TILES + LOAD + body + "\n" + STORE, args="low=-0.25, high=0.25")
    assert ("TL749" in {finding.code for finding in findings(text)}) == found
