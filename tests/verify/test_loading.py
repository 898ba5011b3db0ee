from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.verify.support import MAIN, SCRIPT, by_calls, source
from tl2npu.verify.loading import anything_importable, execute
from tl2npu.verify.settings import Call

TORCH = SCRIPT.replace("import numpy as np\n", "import numpy as np\nimport torch\nimport torch.nn.functional as F\n", 1)

HOST = """

@torch.no_grad()
def reference(x):
    return F.relu(x)


class Net(torch.nn.Module):
    pass


torch.manual_seed(0)
"""


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without torch."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "torch" else real(name, *a))
    for name in [n for n in sys.modules if n.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)


def test_the_text_counts_and_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mod.py"
    path.write_text("x = 1\n")
    module = execute(
        source("import inspect\n\ndef f():\n    return 2\n\nx = inspect.getsource(f)\n", "mod.py", tmp_path), "mod", ()
    )
    assert module.x == "def f():\n    return 2\n"
    assert module.__file__ == str(path)


def test_files_beside_it_can_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helper_beside.py").write_text("value = 5\n")
    monkeypatch.setattr(sys, "path", sys.path[:])
    assert execute(source("from helper_beside import value\n", "mod.py", tmp_path), "mod", ()).value == 5
    sys.modules.pop("helper_beside")


@pytest.mark.usefixtures("without_torch")
@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="with torch it is torch that is asked")
def test_how_many_cores_there_are_is_known_without_torch() -> None:
    asked = 'import torch\ncores = int(torch.npu.get_device_properties("npu").cube_core_num)\nassert cores == 24\n'
    used = SCRIPT.replace(MAIN, "").replace("import tilelang\n", f"{asked}import tilelang\n", 1)
    assert by_calls(used, used.replace("factor)", "factor * 1.0)")).ok


def test_kernels_can_be_had_without_torch() -> None:
    used = TORCH.replace(MAIN, HOST)
    typed = used.replace('"float32"', "torch.float32")
    assert by_calls(used, typed).ok
    assert "torch" not in sys.modules


def test_kernels_can_be_had_without_the_packages_of_their_references() -> None:
    head = "import nobodys_ops.triton\nfrom nobodys_ops import chunk, Config\n"
    head += "assert nobodys_ops.__version__ >= '0' and nobodys_ops.__file__\n"
    head += "@nobodys_ops.triton.autotune([Config(1)])\ndef reference(): ...\n"
    used = SCRIPT.replace(MAIN, "").replace("import tilelang\n", f"{head}import tilelang\n", 1)
    result = by_calls(used, used.replace("factor)", "factor * 1.0)"))
    assert result.ok
    assert "nobodys_ops is not installed: its names have no values" in result.notes
    assert "nobodys_ops" not in sys.modules


def test_installed_packages_do_without_what_they_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the user's own files get empty packages: what an installed one tries to import is its own affair."""
    installed = tmp_path / "site-packages"
    installed.mkdir()
    text = "try:\n    import nobodys_speedup\nexcept ImportError:\n    nobodys_speedup = None\n"
    lazily = "import importlib\ntry:\n    importlib.import_module('nobodys_plugin')\nexcept ImportError:\n    pass\n"
    (installed / "algebra_of_somebody.py").write_text(text + lazily)
    monkeypatch.syspath_prepend(str(installed))
    head = "import algebra_of_somebody, nobodys_ops\nassert algebra_of_somebody.nobodys_speedup is None\n"
    used = SCRIPT.replace(MAIN, "").replace("import tilelang\n", f"{head}import tilelang\n", 1)
    result = by_calls(used, used.replace("factor)", "factor * 1.0)"))
    monkeypatch.delitem(sys.modules, "algebra_of_somebody")
    assert result.ok
    said = [note for note in result.notes if "not installed" in note]
    assert said == ["nobodys_ops is not installed: its names have no values"]


def test_modules_of_an_installed_package_are_not_invented() -> None:
    used = SCRIPT.replace(MAIN, "").replace("import tilelang\n", "import json.nothing_here\nimport tilelang\n", 1)
    result = by_calls(used, used)
    assert not result.ok
    assert "ModuleNotFoundError" in result.kernels[0].reason


@pytest.mark.usefixtures("without_torch")
def test_nothing_is_computed_without_torch() -> None:
    with anything_importable():
        import torch

        for wrong in (lambda: torch.randn(3) + 1, lambda: [0][torch.tensor(0)], lambda: len(torch.zeros(3))):
            with pytest.raises(TypeError):
                wrong()
        assert torch.float16 == "float16"
    assert "torch" not in sys.modules


def test_the_file_decides_alone_about_postponed_annotations(tmp_path: Path) -> None:
    module = execute(source("def f(x: 1 + 1): ...\n", "mod.py", tmp_path), "mod", ())
    assert module.f.__annotations__ == {"x": 2}


def test_a_module_of_a_package_imports_from_its_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    inner = tmp_path / "outer_pack" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").write_text("")
    (inner.parent / "sizes.py").write_text("width = 64\n")
    text = "from ..sizes import width\n"
    assert execute(source(text, "mod.py", inner), "mod", ()).width == 64
    for name in [n for n in sys.modules if n.startswith("outer_pack")]:
        monkeypatch.delitem(sys.modules, name)


def test_a_kernel_of_a_factory_inside_of_a_function() -> None:
    inner = SCRIPT.replace(MAIN, "").replace("@tilelang.jit", "def outer(rows):\n    @tilelang.jit").split("def outer")
    head, (first, *rest) = inner[0], inner[1].split("\n")
    body = "\n".join(f"    {line}" if line and not line.startswith("    @tilelang") else line for line in rest)
    text = f"{head}def outer{first}\n{body}\n    return scale(rows)\n"
    result = by_calls(text, text.replace("factor)", "factor * 1.0)"), Call("outer", {"rows": 64}))
    assert [k.status for k in result.kernels] == ["verified"]
