"""``migrate --verify``: what fails is taken back, kernel by kernel."""

from __future__ import annotations

from tests.verify.support import HEAD, MAIN, SCALE, SCRIPT
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult, Verified
from tl2npu.verify.migration import migrate_verified
from tl2npu.verify.process import here

BIASED = """

@tilelang.jit(out_idx=[2], pass_configs=pass_configs)
def add_bias(rows):
    @T.prim_func
    def main(
        X: T.Tensor((rows, 64), "float32"),
        Bias: T.Tensor((64,), "float32"),
        Y: T.Tensor((rows, 64), "float32"),
    ):
        with T.Kernel(rows // 32, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, 64), "float32")
            bias = T.alloc_ub((64,), "float32")
            T.copy(X[cid * 32 + vid * 16, 0], x)
            T.copy(Bias[0], bias)
            for i, j in T.Parallel(16, 64):
                x[i, j] = x[i, j] + bias[j]  # tl2npu: ignore[TL822]
            T.copy(x, Y[cid * 32 + vid * 16, 0])

    return main
"""
LAUNCH = "\n\nadd_bias(64)(np.zeros((64, 64), np.float32), np.arange(64, dtype=np.float32))\n"


def verified(text: str) -> FileResult:
    return migrate_verified(text, "kernel.py", Options(), runner=here)


def test_a_kernel_that_agrees_is_migrated_as_without_the_option() -> None:
    result = verified(SCRIPT)
    assert result.new_text == migrate_text(SCRIPT, "kernel.py", Options()).new_text
    assert [(k.disposition, k.verified) for k in result.kernels] == [("migrated", Verified("sim", 1, 0.0))]
    assert result.diagnostics == ()


def test_the_kernel_that_fails_is_taken_back_and_the_other_stays() -> None:
    """Each vector core gets half of a bias; the author has silenced the check that says so, and that of every run."""
    text = HEAD + SCALE + BIASED + MAIN + LAUNCH
    options = Options(self_check=False)
    assert [k.disposition for k in migrate_text(text, "kernel.py", options).kernels] == ["migrated", "migrated"]
    result = migrate_verified(text, "kernel.py", options, runner=here)
    assert [(k.name, k.disposition) for k in result.kernels] == [
        ("scale.main", "migrated"),
        ("add_bias.main", "refused"),
    ]
    assert [k.verified for k in result.kernels] == [Verified("sim", 1, 0.0), None]
    assert BIASED in (result.new_text or "")
    assert SCALE not in (result.new_text or "")
    assert {d.code for d in result.diagnostics} == {"TL907", "TL909"}
    line = (
        (HEAD + SCALE + BIASED)
        .split("\n")
        .index("                x[i, j] = x[i, j] + bias[j]  # tl2npu: ignore[TL822]")
    )
    readings = next(d.message for d in result.diagnostics if d.code == "TL909")
    assert f"violated limits: TL822 line {line + 1}: " in readings
    assert {(d.severity, d.kernel) for d in result.diagnostics} == {("error", "add_bias.main")}


def test_a_kernel_that_cannot_be_executed_stays_migrated_and_is_named() -> None:
    result = verified(HEAD + SCALE)
    assert result.changed
    assert [(k.disposition, k.verified) for k in result.kernels] == [("migrated", None)]
    assert [(d.code, d.severity, d.kernel) for d in result.diagnostics] == [("TL906", "warning", "scale.main")]


def test_a_script_that_fails_only_after_the_migration_takes_everything_back() -> None:
    """The kernel's own text is looked at by the script: its launches agree, and the script fails."""
    text = SCRIPT + '\n\nassert "vid" in open(__file__).read() if False else "thr" + "eads=2" not in SOURCE()\n'
    text = text.replace("import numpy as np\n", "import inspect\n\nimport numpy as np\n", 1)
    text = text.replace("SOURCE()", "inspect.getsource(scale)")
    result = verified(text)
    assert not result.changed
    assert [(k.disposition, k.verified) for k in result.kernels] == [("refused", None)]
    assert {d.code for d in result.diagnostics} == {"TL910"}


def test_a_script_that_fails_before_and_after_is_a_warning() -> None:
    result = verified(SCRIPT.replace("x * 0.5)", "x * 0.25)"))
    assert result.changed
    assert {(d.code, d.severity) for d in result.diagnostics} == {("TL910", "warning")}


def test_nothing_is_executed_where_nothing_changes() -> None:
    text = (
        SCRIPT.replace("import numpy as np\n", "import numpy as np\nraise AssertionError\n")
        .replace(
            "T.Kernel(rows // 32, is_npu=True) as (cid, vid)", "T.Kernel(rows // 32, threads=2, is_npu=True) as (cid)"
        )
        .replace("(16, 64)", "(32, 64)")
        .replace(" + vid * 16", "")
    )
    result = verified(text)
    assert not result.changed
    assert [k.disposition for k in result.kernels] == ["unchanged"]
    assert result.diagnostics == migrate_text(text, "kernel.py", Options()).diagnostics


def test_advice_for_a_kernel_that_no_script_launches() -> None:
    """``migrate`` itself has no ``--args``."""
    result = migrate_verified(SCRIPT.replace(MAIN, ""), "kernel.py", Options(), runner=here)
    (found,) = [d for d in result.diagnostics if d.code == "TL906"]
    assert "`tl2npu verify FILE --args 'factory(name=value)'`" in found.help


def test_the_check_of_every_run_finds_it_too() -> None:
    text = HEAD + SCALE + BIASED + MAIN + LAUNCH
    result = migrate_text(text, "kernel.py", Options())
    assert [k.disposition for k in result.kernels] == ["migrated", "refused"]
    (found,) = [d for d in result.diagnostics if d.code == "TL970"]
    assert text.split("\n")[found.line - 1].strip() == "x[i, j] = x[i, j] + bias[j]  # tl2npu: ignore[TL822]"


RACE = '''
import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def shifted(M, N, bm=32):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, bm), threads=128) as bx:
            a = T.alloc_fragment((bm, N), "float32")
            T.copy(A[bx * bm, 0], a)
            for i, j in T.Parallel(bm, N):
                a[i, j] = a[i, j] + 1.0
            T.copy(a, B[bx * 8, 0])

    return main


shifted(128, 64)(np.random.rand(128, 64).astype(np.float32))
'''.lstrip()


def test_a_fault_of_the_old_kernel_is_told_of_the_old_kernel() -> None:
    """Tiles of 32 rows, 8 rows apart: blocks overwrite each other, whatever the kernel is written in."""
    result = verified(RACE)
    assert [k.disposition for k in result.kernels] == ["refused"]
    assert result.kernels[0].reason.startswith("the old kernel: Potential WAW hazard at GM: Write of B at kernel.py:15")
    assert not any("(migrated)" in item.message for item in result.diagnostics)
    errors = [item for item in result.diagnostics if item.severity == "error"]
    assert [item.help for item in errors] == ["the migrated kernel does the same: mend the old one, and migrate again"]
