"""FlagTree's TLE: the scripts in ``tle/`` are migrated and agree with Triton's interpreter; the rest is refused."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import refusals
from tl2npu.options import Options
from tl2npu.triton.migrate import Translated, to_tilelang
from tl2npu.triton.result import migrate_triton
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")

SCRIPTS = Path(__file__).with_name("tle")


def kernel(body: str, imports: str = "import triton.experimental.tle.language as tle") -> str:
    """A kernel on two vectors, with buffers ``a`` and ``b``, of which it stores ``b``."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return (
        f"import torch\nimport triton\nimport triton.language as tl\n{imports}\n\n\n@triton.jit\n"
        "def k(x_ptr, y_ptr, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
        "    a = tle.gpu.alloc([B], dtype=tl.float32)\n    b = tle.gpu.alloc([B], dtype=tl.float32)\n"
        "    tle.gpu.copy(x_ptr + i, a, [B])\n"
        f"{lines}    tle.gpu.copy(b, y_ptr + i, [B])\n\n\n"
        "x, y, n = torch.randn(64), torch.empty(64), 40\nk[(1,)](x, y, n, B=64)\n"
    )


@pytest.mark.sampled
@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_kernels_are_migrated(script: Path) -> None:
    result = migrate_triton(script.read_text(encoding="utf-8"), script.name, Options())
    assert {kernel.disposition for kernel in result.kernels} == {"migrated"}
    assert "triton" not in (result.new_text or "").replace("Triton", "")


@needs_triton
@pytest.mark.parametrize("scripts", [("lite", "gpu"), ("dsa", "aliases")])  # that give `tle` one meaning
def test_kernels_agree_with_the_interpreter(scripts: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    texts = [(SCRIPTS / f"{script}.py").read_text(encoding="utf-8") for script in scripts]
    file.write_text("\n\n".join(texts), encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert {kernel.name: kernel.status for kernel in result.kernels if kernel.status != "verified"} == {}
    assert result.ok


@cache
def translated(script: str) -> Translated:
    return to_tilelang((SCRIPTS / f"{script}.py").read_text(encoding="utf-8"))


def text_of(script: str, name: str) -> str:
    """The TileLang text of one kernel of a script."""
    return translated(script).text.split(f"def {name}(")[1].split("return main")[0]


def test_short_copies_are_plain_where_nothing_behind_them_is_seen() -> None:
    assert "if_then_else" not in text_of("dsa", "looped")
    assert "if_then_else" in text_of("aliases", "kept_rest")
    assert "if_then_else" in text_of("aliases", "padded")


def test_memory_that_is_carried_through_a_loop_is_not_pipelined() -> None:
    assert "Pipelined" in text_of("lite", "overlapped")
    assert "Pipelined" not in text_of("aliases", "prefetched") + text_of("aliases", "delayed")


def test_hints_are_told() -> None:
    (staged,) = (kernel for kernel in to_tilelang((SCRIPTS / "lite.py").read_text()).kernels if kernel.name == "staged")
    told = [note.message for note in staged.notes if note.code == "TL593"]
    assert [text.split(" ")[0] for text in told] == [
        "`tle.pipeline_group(0)`",
        "`tle.pipeline_group(1)`",
        "`tle.pipeline_group(2)`",
        "`pipe_stages`",
        "`pipe_orders`",
        "`executors`",
    ]


@pytest.mark.parametrize(
    ("imports", "codes"),
    [
        ("import triton.experimental.tle as tle", []),
        ("from triton.experimental.tle import language as tle", []),
        ("import triton.experimental.tle.language as tle", []),
        ("import flag_gems.utils.triton_lang_extension as tle", ["TL544"]),
        ("from flag_gems.utils import triton_lang_extension as tle", ["TL544"]),
    ],
)
def test_names_are_resolved_by_their_import(imports: str, codes: list[str]) -> None:
    assert refusals(kernel("tl.store(tle.gpu.local_ptr(b), tl.load(tle.gpu.local_ptr(a)))", imports)) == codes


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("tl.store(tle.gpu.local_ptr(b), tl.load(tle.gpu.local_ptr(a, (63 - i,))))", "TL590"),
        ("tl.store(tle.gpu.local_ptr(b), tl.load(tle.gpu.local_ptr(a, (i * 2,)), mask=i < 32))", "TL590"),
        ("tl.store(tle.gpu.local_ptr(b), tl.load(tle.gpu.local_ptr(a, (i + 8,)), mask=i < 56, other=0.0))", "TL590"),
        ("tl.store(tle.gpu.local_ptr(b, (i - 8,)), tl.load(tle.gpu.local_ptr(a)))", "TL590"),
        ("j = tl.load(x_ptr + i).to(tl.int32)\ntl.atomic_add(tle.gpu.local_ptr(b, (j % 8,)), 1.0)", "TL590"),
        ("tl.atomic_add(tle.gpu.local_ptr(b, (i // 2,)), 1.0)", "TL590"),
        ("tl.atomic_max(tle.gpu.local_ptr(b), 1.0)", "TL535"),
        ("tle.dsa.add(a, tl.zeros([B], tl.float32), b)", "TL591"),
        ("c = tle.gpu.alloc([B], dtype=tl.float16)\ntle.dsa.add(a, a, c)", "TL591"),
        ("c = tle.gpu.alloc([2 * B], dtype=tl.float32)\ntle.dsa.add(a, a, c)", "TL591"),
        ("tle.gpu.copy(x_ptr + tl.arange(0, 128), b, [128])", "TL591"),
        ("c = tle.gpu.alloc([B], dtype=tl.float32, alias=a)", "TL591"),
        (
            "t = tle.dsa.to_tensor(a)\ntle.gpu.copy(x_ptr + i, a, [B])\nc = tle.dsa.to_buffer(t)\ntle.dsa.add(c, c, b)",
            "TL591",
        ),
        ("c = tle.gpu.alloc([B], dtype=tl.float32, scope=tle.gpu.tmem)", "TL589"),
        ("tle.gpu.copy(b, x_ptr + i, [30])", ""),
        ("tle.gpu.copy(a, y_ptr + i, [n + 30])\ntle.dsa.add(a, a, b)", "TL522"),
        ("tle.gpu.unheard_of(a)", "TL530"),
    ],
)
def test_what_would_be_silently_wrong_is_refused(body: str, code: str) -> None:
    assert refusals(kernel(body)) == ([code] if code else [])
