"""Old and new as scripts, in child processes as a user has them."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.in_process import copied
from tests.verify.support import HEAD, MAIN, SCALE, SCRIPT, by_calls, by_script, codes
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.verified import ScriptCheck
from tl2npu.verify.calls import parse_call
from tl2npu.verify.process import apart
from tl2npu.verify.settings import Call

MIGRATED = migrate_text(SCRIPT, "kernel.py", Options()).new_text or ""


def test_a_script_and_its_migration() -> None:
    result = by_script(SCRIPT, MIGRATED, apart)
    assert result.ok
    assert [k.status for k in result.kernels] == ["verified"]
    assert result.scripts == (ScriptCheck("old", 0, "fine\n"), ScriptCheck("new", 0, "fine\n"))


def test_every_launch_is_compared() -> None:
    """The second launch is wrong, the first is not: the last element of the row is 0 in it."""
    main = "\n\nfor n in (1, 2):\n    scale(32 * n)(np.ones((32 * n, 64), np.float32))\n"
    wrong = MIGRATED.replace(MAIN, main).replace("T.copy(X[cid * 32, 0], x)", "T.copy(X[0, 0], x)")
    old = (
        HEAD
        + SCALE
        + main.replace("np.ones((32 * n, 64), np.float32)", "np.arange(2048 * n, dtype=np.float32).reshape(32 * n, 64)")
    )
    result = by_script(old, wrong)
    assert [len(c.problems) > 0 for c in result.comparisons if not c.draw] == [False, True]
    assert result.comparisons[1].call == "scale(rows=64, factor=0.5)"


def test_the_inputs_are_those_of_the_old_script() -> None:
    """The new script makes other tensors; its kernel is fine nonetheless, and so are its own checks."""
    result = by_script(SCRIPT, MIGRATED.replace("reshape(64, 64)", "reshape(64, 64)[::-1].copy()"))
    assert result.ok
    assert result.comparisons[0].max_error == 0.0


def test_in_place_tensors_and_the_same_tensor_twice() -> None:
    both = SCALE.replace("out_idx=[1], ", "")
    main = "\n\nt = np.ones((64, 64), np.float32)\nscale(64)(t, t)\nassert (t == 0.5).all()\n"
    old, new = HEAD + both + main, MIGRATED.replace(MAIN, main).replace("out_idx=[1], ", "")
    result = by_script(old, new)
    assert result.ok, result.diagnostics
    assert result.comparisons[0].outputs == ("X", "Y")
    assert not by_script(old, new.replace("factor)", "factor * factor)")).ok


def test_the_new_scripts_own_check_fails() -> None:
    result = by_script(SCRIPT, MIGRATED.replace("x * 0.5)", "x * 0.25)"), copied)
    assert not result.ok
    assert codes(result) == ["TL910"]
    assert "the new script ended with exit code 1" in result.diagnostics[0].message
    assert [k.status for k in result.kernels] == ["verified"]


def test_an_old_script_that_fails_proves_nothing() -> None:
    result = by_script(SCRIPT.replace("x * 0.5)", "x * 0.25)"), MIGRATED)
    assert not result.ok
    assert "the old script ended with exit code 1" in result.diagnostics[0].message


@pytest.mark.parametrize("ending", ["raise SystemExit(0)", "import sys; sys.exit()"])
def test_a_script_may_exit(ending: str) -> None:
    assert by_script(SCRIPT + ending + "\n", MIGRATED).ok


def test_a_script_that_ends_its_process_has_not_ended() -> None:
    result = by_script(SCRIPT + "\nimport os\nos._exit(0)\n", MIGRATED, copied)
    assert not result.ok
    assert result.scripts[0].exit_code is None
    assert "died" in result.diagnostics[0].message


def test_a_script_without_a_launch() -> None:
    result = by_script(HEAD + SCALE, HEAD + SCALE)
    assert not result.ok
    assert codes(result) == ["TL906"]
    assert "never launched" in result.diagnostics[0].message
    assert "`--args 'scale(rows=...)'`" in result.diagnostics[0].help
    built = HEAD + SCALE + "\nscale(64, factor=2.0)\n"
    assert "`--args 'scale(64, factor=2.0)'`" in by_script(built, built).diagnostics[0].help


def test_a_missing_import() -> None:
    result = by_script("import missing_module_of_nobody\n" + SCRIPT, MIGRATED, copied)
    assert not result.ok
    assert [d.code for d in result.diagnostics] == ["TL910"]  # not once more for each kernel
    assert (
        result.diagnostics[0].message
        == "the old script imports `missing_module_of_nobody`, which is not installed here"
    )
    assert "install `missing_module_of_nobody`" in result.diagnostics[0].help


def test_a_missing_part_of_what_is_stood_in_for() -> None:
    """Nothing can be installed against that."""
    result = by_script("raise ModuleNotFoundError(\"No module named 'tilelang'\")\n" + SCRIPT, MIGRATED, copied)
    assert "ended with exit code 1: ModuleNotFoundError" in result.diagnostics[0].message
    assert "install" not in result.diagnostics[0].help


def test_kernels_without_a_factory_of_the_module() -> None:
    """tilelang.compile of a prim_func, in a function of its own: compared in the order of the launches."""

    def compiled(text: str) -> str:
        text = text.replace("@tilelang.jit(out_idx=[1], pass_configs=pass_configs)\n", "")
        return text.replace("scale(64)(x)", "tilelang.compile(scale(64), out_idx=[1], pass_configs=pass_configs)(x)")

    old, new = compiled(SCRIPT), compiled(MIGRATED)
    result = by_script(old, new)
    assert result.ok, result.diagnostics
    assert result.kernels[0].verified is not None
    wrong = by_script(old, new.replace("factor)", "factor * 2.0)").replace("x * 0.5", "x * 1.0"))
    assert codes(wrong) == ["TL907"]
    fewer = new.replace("tilelang.compile(", "(lambda *_, **__: lambda x: x * 0.5)(")
    assert codes(by_script(old, fewer)) == ["TL906"]


def inside(text: str, first: str = "") -> str:
    """The factory in a function that has its factor."""
    head, factory = text.replace(", factor=0.5", "").split("@tilelang.jit", 1)
    factory, main = factory.split("\n    return main\n")
    lines = f"{first}@tilelang.jit{factory}\n    return main\nreturn scale\n".splitlines()
    around = "".join(f"    {line}\n" if line else "\n" for line in lines)
    return f"{head}def scaled(factor):\n{around}{main.replace('scale(64)', 'scaled(0.5)(64)')}"


def test_a_factory_inside_of_a_function_is_made_again() -> None:
    """Also where it launches two kernels now, which no launch of the script is like."""
    new = inside(MIGRATED.replace(MAIN, ""))
    result = by_script(inside(SCRIPT), new)
    assert result.ok, result.diagnostics
    assert result.comparisons[0].call == "scale(rows=64)"
    assert codes(by_script(inside(SCRIPT), new.replace("x, factor)", "x, factor * 2.0)"))) == ["TL907"]
    twice = "def scale(rows):\n        def run(X):\n            return part(rows)(part(rows)(X) * 2.0)\n"
    twice += "        return run\n\n    return scale"
    chain = new.replace("def scale(", "def part(").replace("return scale", twice)
    assert by_script(inside(SCRIPT), chain).ok
    assert codes(by_script(inside(SCRIPT), chain.replace("(X) * 2.0", "(X) * 4.0"))) == ["TL907"]
    other = new.replace("return scale", "return lambda rows: scale(rows)")
    assert codes(by_script(inside(SCRIPT), other)) == ["TL906"]


@pytest.mark.parametrize("first", ["factor = factor * 1\n", "[factor := factor * 1]\n", "del factor\nfactor = 0.5\n"])
def test_what_a_function_was_called_with_is_not_known_if_it_binds_a_parameter_again(first: str) -> None:
    old, new = inside(SCRIPT, first), inside(MIGRATED.replace(MAIN, ""), first)
    result = by_script(old, new)
    assert codes(result) == ["TL906"]
    assert "no factory 'scale'" in result.diagnostics[0].message


@pytest.mark.thorough
def test_time_is_limited_and_children_of_children_end(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    hang = f"""
import subprocess, sys, pathlib
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path({str(pid)!r}).write_text(str(child.pid))
while True:
    pass
"""
    started = time.monotonic()
    result = by_script(SCRIPT + hang, MIGRATED, apart, timeout=2.0)
    assert time.monotonic() - started < 60
    assert not result.ok
    assert "TL911" in codes(result)
    assert "was stopped after 2 seconds of CPU time (--timeout)" in next(
        d.message for d in result.diagnostics if d.code == "TL911"
    )
    assert result.scripts[0].exit_code is None
    if hasattr(os, "killpg"):
        with pytest.raises(ProcessLookupError):
            _wait_for_end(int(pid.read_text()))


def _wait_for_end(pid: int) -> None:
    for _ in range(100):
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            raise ProcessLookupError
        time.sleep(0.05)


@pytest.mark.thorough
def test_the_time_of_a_kernel_is_its_own() -> None:
    multiply = "            T.tile.mul(x, x, factor)\n"
    slow = MIGRATED.replace(multiply, multiply + "            for _ in T.serial(10 ** 8):\n    " + multiply)
    result = by_script(SCRIPT, slow, copied, timeout=1.5)
    assert not result.ok
    found = next(d for d in result.diagnostics if d.code == "TL911")
    assert found.kernel == "scale.main"
    assert [k.status for k in result.kernels] == ["not verified"]


MUL = "            T.tile.mul(x, x, factor)\n"
LONG = (
    SCRIPT.replace("rows, factor=0.5", "rows, turns=1 << 30, factor=0.5")
    .replace(MUL, MUL + "            for _ in T.serial(turns):\n                T.tile.abs(x, x)\n")
    .replace(", x * 0.5", ", x * 0.5, atol=1e3")
)


@pytest.mark.thorough
@pytest.mark.parametrize("calls", [(), (Call("scale", {"rows": 64}),)], ids=["script", "call"])
def test_a_call_that_is_small_enough_is_named(calls: tuple[Call, ...]) -> None:
    """Where the time is used up: the same factory with other arguments, which is verified."""
    result = by_script(LONG, LONG, copied, timeout=1.0, calls=calls)
    found = next(d for d in result.diagnostics if d.code == "TL911")
    option = re.search(r'^use `--args "([^"]+)"`, which is small enough', found.help)
    assert option is not None, found
    call = parse_call(option[1])
    assert (call.factory, call.arguments["rows"], call.arguments["factor"]) == ("scale", 64, 0.5)
    assert 2 <= call.arguments["turns"] < 1 << 20
    assert by_calls(LONG, LONG, replace(call, inputs={"X": "np.ones(shape, np.float32)"}), draws=1).ok


def test_a_new_file_without_a_script() -> None:
    """The kernels are found by name, and called with the arguments of the old script."""
    result = by_script(SCRIPT, MIGRATED.replace(MAIN, ""))
    assert result.ok, result.diagnostics
    assert result.kernels[0].verified is not None
    assert not by_script(SCRIPT, MIGRATED.replace(MAIN, "").replace("factor)", "factor * 2.0)")).ok


@pytest.mark.parametrize(("code", "ok"), [("0", True), ("", True), ("False", True), ("3", False)])
def test_a_script_that_ends_by_an_exit(code: str, ok: bool) -> None:
    """As a module it does so as well, where its own launch is another one."""
    old, other = SCRIPT, MIGRATED.replace("scale(64)(x)", "scale(64, 0.25)(x)").replace("x * 0.5", "x * 0.25")
    result = by_script(old, f"{other}\nraise SystemExit({code})\n")
    assert result.ok is ok, result.diagnostics


def test_a_new_script_with_other_arguments() -> None:
    """Its own launch is another one, so the old one is repeated by name."""
    other = MIGRATED.replace("scale(64)(x)", "scale(64, 0.25)(x)").replace("x * 0.5", "x * 0.25")
    result = by_script(SCRIPT, other)
    assert result.ok, result.diagnostics
    assert [c.call for c in result.comparisons] == ["scale(rows=64, factor=0.5)"]


def test_the_arguments_of_scripts() -> None:
    text = SCRIPT.replace(
        'if __name__ == "__main__":\n',
        'if __name__ == "__main__":\n    import sys\n\n    assert sys.argv[1:] == ["--size", "4 5"]\n',
    )
    new = MIGRATED.replace(
        'if __name__ == "__main__":\n',
        'if __name__ == "__main__":\n    import sys\n\n    assert sys.argv[1:] == ["--size", "4 5"]\n',
    )
    assert by_script(text, new, script_args=("--size", "4 5")).ok
    assert not by_script(text, new).ok


def test_an_eager_kernel_with_dynamic_extents_is_made_again_by_its_constants() -> None:
    """What a launch decides (``T.dynamic``) is no argument of the factory; what compiles (``T.const``) is."""
    head = "import numpy as np\nimport tilelang\nimport tilelang.language as T\n"
    old = f"""{head}
@tilelang.jit
def scale(X, factor=2.0):
    rows = T.dynamic("rows")
    columns = T.const("columns")
    X: T.Tensor((rows, columns), "float32")
    Y = T.empty((rows, columns), "float32")
    with T.Kernel(rows, threads=128) as bx:
        x = T.alloc_fragment((columns,), "float32")
        T.copy(X[bx, 0], x)
        for j in T.Parallel(columns):
            x[j] *= factor
        T.copy(x, Y[bx, 0])
    return Y


x = np.ones((5, 64), np.float32)
assert (scale(x, factor=3.0) == 3).all()
raise SystemExit(1)
"""
    new = f"""{head}
@tilelang.jit(out_idx=[1])
def scale(columns, factor=2.0):
    rows = T.symbolic("rows")

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows, threads=128) as bx:
            x = T.alloc_fragment((columns,), "float32")
            T.copy(X[bx, 0], x)
            for j in T.Parallel(columns):
                x[j] = x[j] * factor
            T.copy(x, Y[bx, 0])

    return main
"""
    result = by_script(old, new)
    assert result.comparisons[0].problems == ()
    assert result.comparisons[0].outputs == ("Y",)


def test_an_eager_kernel_is_called_in_the_order_of_its_parameters() -> None:
    """Not in that of the declarations in its body."""
    old = """import tilelang
import tilelang.language as T


@tilelang.jit
def difference(X, Y):
    rows = T.const("rows")
    Y: T.Tensor((rows, 64), "float32")
    X: T.Tensor((rows, 64), "float32")
    Z = T.empty((rows, 64), "float32")
    with T.Kernel(rows // 16, threads=128) as bx:
        x = T.alloc_shared((16, 64), "float32")
        y = T.alloc_shared((16, 64), "float32")
        T.copy(X[bx * 16, 0], x)
        T.copy(Y[bx * 16, 0], y)
        for i, j in T.Parallel(16, 64):
            x[i, j] = x[i, j] - y[i, j]
        T.copy(x, Z[bx * 16, 0])
    return Z
"""
    new = migrate_text(old, "kernel.py", Options()).new_text or ""
    call = Call("difference", {"rows": 32})
    assert by_calls(old, new, call).ok
    swapped = new.replace("X:", "W:").replace("Y:", "X:").replace("W:", "Y:")
    assert codes(by_calls(old, swapped, call)) == ["TL907"]
