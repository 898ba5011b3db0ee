"""Every way to get at the language: a kernel is read, or refused by a code of its own, but never passed over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tl2npu.cli import cli
from tl2npu.codes import CODES
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options

KERNEL = """

@tilelang.jit(out_idx=[1])
def scale(M, N, bm=32):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, bm), threads=128) as bx:
            s = T.alloc_shared((bm, N), "float16")
            T.copy(X[bx * bm, 0], s)
            for i, j in T.Parallel(bm, N):
                s[i, j] = s[i, j] * 2
            T.copy(s, Y[bx * bm, 0])

    return main
"""
INNER = KERNEL.replace("\n\n@tilelang.jit(out_idx=[1])\n", "")


def inside(header: str, root: str = "T") -> str:
    """The factory below a class or function header, compiled by a call."""
    body = INNER.replace("    return main", "    return tilelang.compile(main, out_idx=[1])").replace("T.", f"{root}.")
    return header + "\n".join(f"    {line}" if line else line for line in body.split("\n"))


READ = {
    "plain": "import tilelang\nimport tilelang.language as T\n" + KERNEL,
    "function": "def load():\n    import tilelang\n    import tilelang.language as T\n    return tilelang, T\n\n\n"
    "tilelang, T = load()\n" + KERNEL,
    "function of one": "def language():\n    from tilelang import language\n    return language\n\n\nimport tilelang\n"
    "T = language()\n" + KERNEL,
    "importlib": 'import importlib\ntilelang = importlib.import_module("tilelang")\n'
    'T = importlib.import_module("tilelang.language")\n' + KERNEL,
    "import_module": 'from importlib import import_module as get\nimport tilelang\nT = get(name="tilelang.language")\n'
    + KERNEL,
    "relative import_module": "import importlib\nimport tilelang\n"
    'T = importlib.import_module(".language", package=tilelang.__name__)\n' + KERNEL,
    "getattr": 'import tilelang\nT = getattr(tilelang, "language")\n' + KERNEL,
    "getattr with default": 'import tilelang\nT = getattr(tilelang, "language", None)\n' + KERNEL,
    "vars": 'import tilelang\nT = vars(tilelang)["language"]\n' + KERNEL,
    "__dict__": 'import tilelang\nT = tilelang.__dict__["language"]\n' + KERNEL,
    "sys.modules": 'import sys\nimport tilelang\nT = sys.modules["tilelang.language"]\n' + KERNEL,
    "read from globals": 'import tilelang\nimport tilelang.language as L\nT = globals()["L"]\n' + KERNEL,
    "__import__": 'tilelang = __import__("tilelang")\nT = __import__("tilelang.language", fromlist=["x"])\n' + KERNEL,
    "attribute of __import__": 'import tilelang\nT = __import__("tilelang.language").language\n' + KERNEL,
    "attribute": "import tilelang\nT = tilelang.language\n" + KERNEL,
    "tuple": "import tilelang\ntilelang, T = tilelang, tilelang.language\n" + KERNEL,
    "if else": "import os\nif os.environ:\n    import tilelang\n    import tilelang.language as T\nelse:\n"
    "    import fake as tilelang\n    import fake.language as T\n" + KERNEL,
    "elif": "import os\nif not os.environ:\n    tilelang = T = None\nelif os.name:\n    import tilelang\n"
    "    from tilelang import language as T\nelse:\n    from fake import tilelang, T\n" + KERNEL,
    "ternary": "import tilelang, fake\nT = tilelang.language if tilelang else fake\n" + KERNEL,
    "or": 'import tilelang, fake\nT = getattr(tilelang, "language", None) or fake\n' + KERNEL,
    "fallback class": "try:\n    import tilelang\n    import tilelang.language as T\nexcept ImportError:\n"
    "    tilelang = None\n    class T:\n        pass\n" + KERNEL,
    "fallback call": "from unittest import mock\ntry:\n    import tilelang\n    import tilelang.language as T\n"
    "except ImportError:\n    tilelang = T = mock.MagicMock()\n" + KERNEL,
    "global": "import tilelang\nT = None\n\n\ndef init():\n    global T\n    import tilelang.language as T\n\n\n"
    "init()\n" + KERNEL,
    "class attribute": inside("import tilelang\n\n\nclass Op:\n    T = tilelang.language\n", "Op.T"),
    "default": inside("import tilelang\n\n\ndef make(T=tilelang.language):\n"),
}
SELF = """
import tilelang


class Op:
    def __init__(self):
        self.T = tilelang.language

    def make(self, M, N, bm=32):
        @self.T.prim_func
        def main(X: self.T.Tensor((M, N), "float16"), Y: self.T.Tensor((M, N), "float16")):
            with self.T.Kernel(self.T.ceildiv(M, bm), threads=128) as bx:
                s = self.T.alloc_shared((bm, N), "float16")
                self.T.copy(X[bx * bm, 0], s)
                self.T.copy(s, Y[bx * bm, 0])

        return tilelang.compile(main, out_idx=[1])
"""
LAZY = """
import importlib
_real = None


class Lazy:
    def __getattr__(self, name):
        return Lazy()


def load():
    global _real, tilelang, T
    if _real is None:
        new_T = importlib.import_module("tilelang.language")
        tilelang = importlib.import_module("tilelang")
        T = new_T
        _real = tilelang
    return _real


tilelang = Lazy()
T = Lazy()
"""
READ["star with a parameter of a name of the language"] = (
    "from tilelang.language import *\nimport tilelang\n"
    + KERNEL.replace("T.", "").replace("bm=32", "bm=32, dtype='float16'").replace('"float16"', "dtype")
)
READ["stand-in"] = LAZY + KERNEL
READ["self"] = SELF
READ["class level self"] = SELF.replace("    def __init__(self):\n        self.T =", "    T =")

UNREAD = {
    "other module": "from mylib import T, tilelang\n" + KERNEL,
    "other module, nothing says tilelang": "from mylib import T, jit\n" + KERNEL.replace("@tilelang.jit", "@jit"),
    "star": "from mylib import *\n" + KERNEL,
    "bare names": "from mylib import *\n" + KERNEL.replace("T.", "").replace("@tilelang.jit", "@jit"),
    "vendored": "from .vendor import tilelang\nfrom .vendor.tilelang import language as T\n" + KERNEL,
    "vendored, absolute": "import my.vendor.tilelang.language as T\nfrom my.vendor import tilelang\n" + KERNEL,
    "parameter": inside("import tilelang\n\n\ndef make(T):\n"),
    "default that is no module": inside("import tilelang\nimport mylib\n\n\ndef make(T=mylib.lang):\n"),
    "dict": 'import tilelang\nT = {"T": tilelang.language}["T"]\n' + KERNEL,
    "walrus": "import tilelang\nif (T := tilelang.language):\n    pass\n" + KERNEL,
    "with": "import tilelang\nfrom contextlib import nullcontext\nwith nullcontext(tilelang.language) as T:\n    pass\n"
    + KERNEL,
    "loop": "import tilelang\nfor T in (tilelang.language,):\n    pass\n" + KERNEL,
    "lazy": 'import tilelang\nfrom lazy import Lazy\nT = Lazy("tilelang.language")\n' + KERNEL,
    "exec of the import": 'import tilelang\nexec("import tilelang.language as T")\n' + KERNEL,
    "two languages": "import tilelang\nimport tilelang.language as T\n\n\ndef f():\n    global T\n    T = wrapped(T)\n"
    + KERNEL,
    "self without a value": SELF.replace("= tilelang.language", "= make_language()"),
    "self with two values": SELF.replace("= tilelang.language", "= tilelang.language\n        self.T = wrap()"),
    "eager": "from mylib import tilelang, T\n\n\n@tilelang.jit\ndef f(A, B):\n"
    "    with T.Kernel(8, threads=128) as bx:\n        T.copy(A[bx * 32, 0], B[bx * 32, 0])\n",
    "launch in no function": "from mylib import T\nwith T.Kernel(8, threads=128) as bx:\n    T.copy(A, B)\n",
    "launch outside, of TileLang": "import tilelang.language as T\nwith T.Kernel(8) as bx:\n    T.copy(A, B)\n",
}
IN_STRING = f"import tilelang\nSOURCE = '''\nimport tilelang.language as T\n{KERNEL}'''\n"

NO_KERNELS = {
    "numba": "import numba\nimport tilelang\n\n\n@numba.jit\ndef f(x):\n    return Kernel(x)\n",
    "jax": "import jax, tilelang\n\n\n@jax.jit\ndef prim_func(x):\n    return x\n",
    "triton": "# tilelang Kernel(\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"
    "def f(x, n: tl.constexpr):\n"
    "    tl.store(x + tl.program_id(0), 1)\n",
    "torch": "import tilelang\nimport torch\n\n\n@torch.jit.script\ndef f(x):\n    return x\n\n\nKernel(3)\n",
    "TVM": "import tilelang\nfrom tvm.script import tir as T, ir as I\n\n\n@I.ir_module\nclass Module:\n"
    "    @T.prim_func\n"
    '    def main(A: T.Buffer((16,), "float32")):\n        for i in T.serial(16):\n            with T.block("b"):\n'
    "                A[i] = A[i] + 1.0\n",
    "TVM with a match": "# like tilelang\nimport tvm.script.tir as T\n\n\n@T.prim_func\ndef main(a: T.handle):\n"
    '    A = T.match_buffer(a, (16,), "float32")\n    for i in T.thread_binding(16, thread="threadIdx.x"):\n'
    "        A[i] = 0.0\n",
    "TVM by another module": "from .common import T\n\n\n@T.prim_func\ndef main(A: T.Buffer((16,))):\n"
    "    A[0] = 0.0\nKernel(1)\n",
    "docstring": f'"""tilelang:\n{KERNEL}"""\n# @T.prim_func with T.Kernel(1)\n',
    "sklearn": "# tilelang\nfrom sklearn.gaussian_process.kernels import Kernel\n\n\ndef f():\n"
    "    with Kernel(1) as k:\n        return k.copy()\n",
    "methods": "import tilelang\n\n\ndef f(kernel):\n    return kernel.prim_func.script(), tilelang.Kernel(1)\n",
}


@pytest.mark.parametrize("name", READ)
def test_a_kernel_is_read(name: str) -> None:
    result = migrate_text(READ[name], "k.py", Options())
    assert [(k.disposition, k.codes) for k in result.kernels if k.disposition != "migrated"] == []
    assert len(result.kernels) == 1
    assert "is_npu=True" in (result.new_text or "")


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_not_read_is_refused(name: str, tmp_path: Path) -> None:
    text = UNREAD[name]
    result = migrate_text(text, "k.py", Options())
    assert [(k.disposition, k.codes) for k in result.kernels] == [("refused", ("TL923",))]
    assert result.new_text == text
    line = next(n for n, row in enumerate(text.split("\n"), 1) if "def main" in row or "Kernel(8" in row)
    line -= name == "eager"
    assert [(d.code, d.line, d.severity) for d in result.diagnostics] == [("TL923", line, "error")]
    checked = check_text(text, "k.py", Options())
    assert [(d.code, d.line, d.severity) for d in checked.diagnostics] == [("TL923", line, "error")]
    file = tmp_path / "k.py"  # and the filter by bytes lets it through
    file.write_text(text)
    for command in (["migrate", "--check"], ["migrate", "--diff"], ["check"]):
        done = CliRunner().invoke(cli, [*command, str(file)])
        assert (done.exit_code, "TL923" in done.output) == (1, True), done.output


def test_notebooks_and_reports_name_it(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": part} for part in ("x = 1\n", UNREAD["parameter"])]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "k.py").write_text(UNREAD["parameter"])
    reports = [str(tmp_path / f"report.{ending}") for ending in ("json", "sarif", "html", "md")]
    options = [part for report in reports for part in ("--report", report)]
    done = CliRunner().invoke(cli, ["migrate", "--check", "-j", "1", "--no-cache", str(tmp_path), *options])
    assert done.exit_code == 1
    assert "2 kernels: 2 refused" in done.output
    assert "n.ipynb:cell 2:" in done.output
    for report in reports:
        assert "TL923" in Path(report).read_text(), report


@pytest.mark.parametrize("name", NO_KERNELS)
def test_what_is_no_kernel_is_left_alone(name: str) -> None:
    for result in (migrate_text(NO_KERNELS[name], "k.py", Options()), check_text(NO_KERNELS[name], "k.py", Options())):
        assert (result.kernels, result.diagnostics, result.error) == ((), (), None)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (IN_STRING, "warning"),
        (IN_STRING + "exec(SOURCE)\n", "error"),
        (IN_STRING.replace("= '''", "= f'''").replace("[", "[[") + "eval(SOURCE)\n", "error"),
        ("import tilelang\nexec(" + repr(KERNEL) + ")\n", "error"),
        (IN_STRING + "code = compile(SOURCE, 'x', 'exec')\n", "error"),
    ],
)
def test_a_kernel_in_a_string(text: str, severity: str) -> None:
    result = migrate_text(text, "k.py", Options())
    assert [(d.code, d.line, d.severity) for d in result.diagnostics] == [("TL924", 2, severity)]
    assert [k.disposition for k in result.kernels] == ["refused"] * (severity == "error")


def test_a_comment_says_that_it_is_no_kernel() -> None:
    text = UNREAD["other module"].replace('"float16")):', '"float16")):  # tl2npu: ignore[TL923]')
    for result in (migrate_text(text, "k.py", Options()), check_text(text, "k.py", Options())):
        assert (result.kernels, result.diagnostics) == ((), ())


def test_kernels_beside_an_unread_one_are_migrated() -> None:
    text = READ["plain"] + UNREAD["parameter"].replace("import tilelang\n", "")
    result = migrate_text(text, "k.py", Options())
    assert [k.disposition for k in result.kernels] == ["migrated", "refused"]


@pytest.mark.parametrize(
    ("library", "imported", "root"),
    [
        ("import tilelang\nimport tilelang.language as T\n", "from lang import T, tilelang", "T"),
        ("import tilelang\nfrom tilelang import language as T\n", "from lang import *", "T"),
        ("import tilelang\nT = tilelang.language\n", "import lang\nfrom lang import tilelang", "lang.T"),
        ("from base import *\n", "from lang import T, tilelang", "T"),
        ("try:\n    import tilelang\n    import tilelang.language as T\nexcept ImportError:\n    tilelang = T = None\n",
         "from lang import T, tilelang", "T"),
        ("import os\nif os.name:\n    import tilelang\n    from tilelang import language as T\nelse:\n"
         "    from fake import T, tilelang\n", "from lang import T, tilelang", "T"),
        ("if X:\n    import tilelang\n    import tilelang.language as T\nelse:\n    tilelang = None\n    T = None\n",
         "from lang import T, tilelang", "T"),
    ],
)  # fmt: skip
def test_the_language_of_another_module(tmp_path: Path, library: str, imported: str, root: str) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "base.py").write_text("import tilelang\nimport tilelang.language as T\n")
    (tmp_path / "lang.py").write_text(library)
    text = f"{imported}\n{KERNEL}".replace("T.", f"{root}.")
    result = migrate_text(text, str(tmp_path / "k.py"), Options())
    assert [(k.disposition, k.codes) for k in result.kernels if k.disposition != "migrated"] == []
    assert len(result.kernels) == 1
    new = result.new_text or ""
    assert f"with {root}.Kernel(" in new
    assert new.startswith(imported)
    assert [
        d.code for d in check_text(new, str(tmp_path / "k.py"), Options()).diagnostics if d.severity == "error"
    ] == []
    assert check_text(new, str(tmp_path / "k.py"), Options()).kernels != ()


@pytest.mark.parametrize("command", [["migrate"], ["migrate", "--check"], ["check"]])
@pytest.mark.parametrize("given", ["file", "directory", "standard input", "notebook"])
@pytest.mark.parametrize(
    "imported",
    [
        "import tilelang",
        "import os, tilelang.language as T",
        "from importlib import import_module; T = import_module('tilelang.language')",
        "T = __import__('tilelang').language",
    ],
)
def test_a_file_that_imports_tilelang_has_to_be_python(
    tmp_path: Path, command: list[str], given: str, imported: str
) -> None:
    file = tmp_path / ("k.ipynb" if given == "notebook" else "k.py")
    broken = "\n\ndef f(:\n    pass\n"
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in (imported, broken)]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    file.write_text(json.dumps(book) if given == "notebook" else f"{imported}\n{broken}")
    where = {"directory": str(tmp_path), "standard input": "-"}.get(given, str(file))
    done = CliRunner().invoke(cli, [*command, where], input=file.read_text())
    place = {"notebook": "k.ipynb:cell 2:3:1", "standard input": "<stdin>:4:1"}.get(given, "k.py:4:1")
    assert (done.exit_code, f"{place} error TL901" in done.output) == (2, True), done.output


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    def __init__(self):\n        self.T = self.T or tilelang.language\n",
        "def T():\n    return T()\n",
        "def f():\n    return g()\n\n\ndef g():\n    return f()\n\n\nT = f()\n",
        "def f():\n    return (f()[0],)\n\n\n(T,) = f()\n",
        "T = T or T\n",
        "T = getattr(T, 'T')\n",
        "class A:\n    T = T\n    U = T\n",
    ],
)
def test_what_is_defined_by_itself_ends(text: str) -> None:
    result = migrate_text(f"import tilelang\n{text}{KERNEL}".replace("T.K", "f().K"), "k.py", Options())
    assert [(k.disposition, k.codes) for k in result.kernels] == [("refused", ("TL923",))]


def test_the_codes_are_errors() -> None:
    assert {CODES[code].severity for code in ("TL923", "TL924")} == {"error"}
