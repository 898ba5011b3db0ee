"""Of several calls that are given, a finding names the one that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.support import HEAD, SCALE, source
from tl2npu.verify.backends import verify
from tl2npu.verify.process import here
from tl2npu.verify.settings import Call, Settings

OLD = HEAD + SCALE
USUAL, WIDE = Call("scale", {"rows": 64}), Call("scale", {"rows": 64, "factor": 3.0})
WRONG = OLD.replace("T.tile.mul(x, x, factor)", "T.tile.mul(x, x, factor if factor < 2.0 else factor + 1.0)")
UNBUILT = OLD.replace("    @T.prim_func", "    assert factor < 2.0, 'large'\n    @T.prim_func")


@pytest.mark.parametrize(("new", "code"), [(WRONG, "TL907"), (UNBUILT, "TL908")])
@pytest.mark.parametrize("calls", [(USUAL, WIDE), (WIDE, USUAL), (WIDE,)])
def test_the_call_that_failed_is_named(new: str, code: str, calls: tuple[Call, ...], tmp_path: Path) -> None:
    result = verify(source(OLD), source(new, "new.py"), Settings(calls=calls), here)
    (found,) = [item for item in result.diagnostics if item.code == code]
    assert found.message.startswith("scale(rows=64, factor=3.0): ") == (len(calls) > 1)
    assert not result.ok
