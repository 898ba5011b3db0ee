"""``migrate --to tle-dsa``: kernels with ``tle.gpu`` in the words of ``tle.dsa``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_tle import SCRIPTS, kernel
from tl2npu.languages import migrate_source
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")
DSA = Options(target="tle-dsa")
GPU = SCRIPTS / "gpu.py"
COPIED = "tl.store(tle.gpu.local_ptr(b), tl.load(tle.gpu.local_ptr(a)))"


def migrated(text: str) -> FileResult:
    return migrate_source(text, "k.py", DSA)


def codes(body: str) -> list[tuple[str, ...]]:
    """The codes of the kernel with this body; none if it is rewritten."""
    return [found.codes for found in migrated(kernel(body)).kernels if found.disposition == "refused"]


@needs_triton
def test_old_and_new_agree_in_the_interpreter(tmp_path: Path) -> None:
    text = GPU.read_text(encoding="utf-8").split("@triton.jit\ndef counted")[0]
    host = GPU.read_text(encoding="utf-8").split("def run_hinted")[1].split("def run_counted")[0]
    calls = GPU.read_text(encoding="utf-8").split("torch.manual_seed")[1].split("assert torch.equal")[0]
    file = tmp_path / "gpu.py"
    file.write_text(f"{text}def run_hinted{host}torch.manual_seed{calls}", encoding="utf-8")
    new = migrated(file.read_text(encoding="utf-8"))
    assert [(found.disposition, found.target) for found in new.kernels] == [("migrated", "tle-dsa")] * 5
    assert "gpu." not in (new.new_text or "")
    assert migrated(new.new_text or "").new_text == new.new_text
    result = verify_files(file, None, Settings(), DSA)
    assert result.ok
    assert {kernel.status for kernel in result.kernels} == {"verified"}


def test_kernels_that_stay_keep_their_import() -> None:
    result = migrated(GPU.read_text(encoding="utf-8"))
    assert [found.name for found in result.kernels if found.disposition == "refused"] == ["counted", "histogram"]
    text = result.new_text or ""
    assert "import triton.experimental.tle as tle_dsa\nimport triton.experimental.tle.language as tle\n" in text
    assert "count_ptr = tle.gpu.local_ptr(counts, (idx,))" in text


def test_memory_that_feeds_products_is_in_l1() -> None:
    text = migrated(GPU.read_text(encoding="utf-8")).new_text or ""
    kinds = {name: text.split(f"def {name}(")[1].split("ascend.")[1][:2] for name in ("added", "tiled", "staging")}
    assert kinds == {"added": "UB", "tiled": "L1", "staging": "L1"}


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import triton.experimental.tle as tle", "tle"),
        ("import triton.experimental.tle.language as tle", "tle"),
        ("from triton.experimental.tle import language as tle", "tle"),
    ],
)
def test_package_keeps_its_name(imports: str, name: str) -> None:
    text = migrated(kernel(COPIED, imports)).new_text or ""
    assert f"import triton.experimental.tle as {name}\n" in text
    assert text.count("experimental") == 1
    assert f"{name}.dsa.to_buffer({name}.dsa.to_tensor(a, writable=True), {name}.dsa.ascend.UB, bind_buffer=b)" in text


def test_submodule_by_its_own_name() -> None:
    text = kernel(COPIED, "from triton.experimental.tle.language import gpu").replace("tle.gpu", "gpu")
    text = (
        text.replace("torch.randn(64)", 'torch.randn(64, device="cuda:1").cuda()')
        + "assert all([t.is_cuda for t in ts])\n"
    )
    new = migrated(text).new_text or ""
    assert "import triton.experimental.tle as tle\n" in new
    assert "import gpu" not in new
    assert 'torch.randn(64, device="npu:1").npu()' in new
    assert "assert all([t.is_npu for t in ts])" in new


@pytest.mark.parametrize(
    "body",
    [
        COPIED,
        "p = tle.gpu.local_ptr(a)\nq = tle.gpu.local_ptr(b, (i,))\n"
        "tl.store(q, tl.load(p, mask=i < n, other=1.0) * 2, i < 9)",
        "h: tl.constexpr = B // 2\nj = tl.arange(0, h)\nfor t in range(2):\n"
        "    p = tle.gpu.local_ptr(a, (t * h + j,))\n"
        "    tl.store(tle.gpu.local_ptr(b, (j + t * h,)), tl.load(p) + 1.0)",
        "t = tl.load(tle.gpu.local_ptr(a))\nu = t * 2\n"
        "tle.gpu.copy(x_ptr + i, a, [B])\ntl.store(tle.gpu.local_ptr(b), u)",
    ],
)
def test_what_is_rewritten(body: str) -> None:
    assert codes(body) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("t = tl.load(tle.gpu.local_ptr(a))\ntle.gpu.copy(x_ptr + i, a, [B])\n"
         "tl.store(tle.gpu.local_ptr(b), t)", "TL595"),
        ("t = tl.load(tle.gpu.local_ptr(a))\nu = t[None, :]\ntle.gpu.copy(x_ptr + i, a, [B])\nv = u + 1", "TL595"),
        ("for j in range(2):\n    if j > 0:\n        u = t + 1\n    t = tl.load(tle.gpu.local_ptr(a))\n"
         "    tle.gpu.copy(x_ptr + i, a, [B])", "TL595"),
        ("tl.store(tle.gpu.local_ptr(b), tl.load(tle.gpu.local_ptr(a, (63 - i,))))", "TL595"),
        ("tl.atomic_add(tle.gpu.local_ptr(b), 1.0)", "TL595"),
        ("p = tle.gpu.local_ptr(b)\nq = p + 1\ntl.store(q, 1.0)", "TL595"),
        ("r = tle.remote(b, shard_id=1)", "TL583"),
        ("tle.gpu.barrier_wait(b)", "TL589"),
        ("c = tle.gpu.alloc([B], dtype=tl.float32, scope=tle.gpu.tmem)", "TL595"),
    ],
)  # fmt: skip
def test_what_would_be_silently_wrong_is_refused(body: str, code: str) -> None:
    assert codes(body) == [(code,)]
