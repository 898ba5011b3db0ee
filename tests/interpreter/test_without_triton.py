"""What is said where Triton is not installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from tl2npu.extras import pip_command
from tl2npu.interpreter.hook import hooked
from tl2npu.interpreter.session import Interpreter, NoTriton

ROOT = Path(__file__).resolve().parents[2]
without = pytest.mark.skipif(find_spec("triton") is not None, reason="Triton is installed")


@without
def test_run_says_in_one_sentence_what_to_install(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import triton\nimport triton.language as tl\n")
    command = [sys.executable, "-m", "tl2npu", "run", str(script)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error: this script needs Triton, which is not installed here" in done.stderr
    assert pip_command("triton") in done.stderr
    assert "Traceback" not in done.stderr


@without
def test_a_script_may_do_without() -> None:
    with hooked(Interpreter()), pytest.raises(ImportError) as caught:
        import triton  # noqa: F401
    assert isinstance(caught.value, NoTriton)


def test_a_version_that_cannot_be_used_is_told_where_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch may have loaded it: scripts without Triton run all the same."""
    old = ModuleType("triton")
    old.__dict__["__version__"] = "3.4.0"
    monkeypatch.setitem(sys.modules, "triton", old)
    with hooked(Interpreter()):
        with pytest.raises(NoTriton, match=r"Triton 3\.4\.0 cannot be used"):
            import triton
        with pytest.raises(NoTriton, match=r"Triton 3\.4\.0 cannot be used"):
            import triton.language  # noqa: F401
    assert sys.modules["triton"] is old


def test_tl2npu_itself_does_not_import_triton() -> None:
    code = "import sys, tl2npu.verify.job, tl2npu.verify.script; assert not {'triton', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
