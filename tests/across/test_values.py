"""Constants of other modules that stand in containers, classes and enumerations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.across.support import CALL, kernel, library, migrated, result_of
from tl2npu.across.symbols import Constant, Member, Symbols

LIB = "from ops.lib import make_add, scaled"
SIZES = """
import dataclasses
import enum
from dataclasses import dataclass
from enum import Enum, IntEnum

N = {rows}
TILES = {{"rows": N, "more": {{1: {rows}}}, "other": print}}
SHAPE = (N, 64)
LIST = [64, N]
ALL = {{**TILES, "cols": 64}}


class Config:
    HALF = 1
    BLOCK: int = N
    LIST = [N]
    NEVER: int

    def method(self):
        self.BLOCK = 3


class Special(Config):
    OTHER = 1


@dataclass(frozen=True)
class Data:
    block: int = {rows}


DATA = Data()
CONFIG = Config()


class Mode(Enum):
    WIDE = N


class Count(IntEnum):
    TILE = {rows}
"""
WAYS = [
    ("from .config import TILES", 'TILES["rows"]'),
    ("from .config import TILES", "TILES['more'][1]"),
    ("from .config import ALL as every", "every['rows']"),
    ("from . import config", 'config.TILES["rows"]'),
    ("import ops.config", "ops.config.SHAPE[0]"),
    ("import ops.config as c", "c.Config.BLOCK"),
    ("from ops.config import SHAPE", "SHAPE[-2]"),
    ("from ops.config import LIST", "LIST[1]"),
    ("from ops.config import Config", "Config.BLOCK"),
    ("from ops.config import Config", "Config.LIST[0]"),
    ("from ops.config import Special", "Special.BLOCK"),
    ("from ops.config import Data", "Data.block"),
    ("from ops.config import DATA", "DATA.block"),
    ("from . import config", "config.DATA.block"),
    ("from ops.config import CONFIG as c", "c.BLOCK"),
    ("from ops.config import Mode", "Mode.WIDE.value"),
    ("from ops.config import Count", "Count.TILE"),
    ("from ops.config import Count", "Count.TILE.value"),
    ("from ops import Config", "Config.BLOCK"),
    ("from . import Config as C", "C.BLOCK"),
    ("from . import config as c", "c.N"),
    ("import ops as o", "o.config.N"),
    ("from .star import *", "N"),
]


def repository(root: Path, imports: str, use: str, rows: int) -> Path:
    """A kernel whose tiles have ``use`` rows."""
    files = {
        "ops/__init__.py": "from .config import Config\n",
        "ops/star.py": "from .config import *\n",
        "ops/config.py": SIZES.format(rows=rows),
        "ops/k.py": kernel(f"{LIB}\n{imports}", rows="ROWS").replace("ROWS", use),
    }
    return library(root, files) / "ops/k.py"


@pytest.mark.sampled
@pytest.mark.parametrize(("imports", "use"), WAYS)
def test_the_value_is_known_and_the_text_stays(tmp_path: Path, imports: str, use: str) -> None:
    """Both vector cores take half of 32 rows each, and cannot of 7."""
    even = repository(tmp_path / "even", imports, use, 32)
    odd = repository(tmp_path / "odd", imports, use, 7)
    new = migrated(even)
    assert "threads=2" in new
    assert f"T.Parallel({use}, 64)" in new
    assert f"T.alloc_shared(({use}, 64), dtype)" in new
    assert imports in new
    assert "\u00b7" not in new
    assert [kernel.target for kernel in result_of(odd).kernels] == ["developer-threads1"]


def test_old_and_new_agree(tmp_path: Path) -> None:
    for number, (imports, use) in enumerate([WAYS[0], WAYS[9]]):
        assert "threads=2" in migrated(repository(tmp_path / str(number), imports, use, 32), CALL)


def test_a_macro_of_another_module_takes_them(tmp_path: Path) -> None:
    config = 'class Config:\n    SCALE = -2.0\n\n\nSIZES = {"up": 3.0}\n'
    text = """
    import tilelang.language as tl

    from . import config
    from .config import SIZES, Config


    @tl.macro
    def scaled(x, rows, cols):
        for i, j in tl.Parallel(rows, cols):
            x[i, j] = x[i, j] * Config.SCALE + config.SIZES["up"] * SIZES['up']


    def make_add(value, rows):
        @tl.macro
        def add(x):
            for i, j in tl.Parallel(rows, 64):
                x[i, j] = x[i, j] + value

        return add
    """
    imports = "from ops.both import make_add, scaled"
    text_of = kernel(imports).replace("ROWS", "32")
    root = library(tmp_path, {"ops/config.py": config, "ops/both.py": text, "ops/k.py": text_of})
    assert "a[i, j] = a[i, j] * (-2.0) + 3.0 * 3.0" in migrated(root / "ops/k.py", CALL)
    more = kernel(f"{imports}\nfrom ops.config import SIZES").replace("ROWS", "32")
    (root / "ops/k.py").write_text(more)
    assert "a[i, j] * (-2.0) + 3.0 * 3.0" in migrated(root / "ops/k.py", CALL)


@pytest.mark.parametrize(
    ("imports", "use", "change"),
    [
        ("from .config import TILES", 'TILES["rows"]', 'TILES["rows"] = 2'),
        ("from .config import TILES", 'TILES["rows"]', 'TILES["more"][1] = 2'),
        ("from .config import TILES", 'TILES["rows"]', "TILES.update(rows=2)"),
        ("from .config import TILES", 'TILES["rows"]', "def f():\n    del TILES['rows']"),
        ("from .config import TILES", 'TILES["rows"]', "other = TILES"),
        ("from .config import LIST", "LIST[1]", "LIST.append(3)"),
        ("from .config import LIST", "LIST[1]", "print(*[f(LIST)])"),
        ("from .config import Config", "Config.BLOCK", "Config.BLOCK = 2"),
        ("from .config import Config", "Config.BLOCK", "setattr(Config, 'BLOCK', 2)"),
        ("from . import config", "config.N", "config.N = 3"),
        ("from .config import TILES", 'TILES["other"]', ""),
        ("from .config import TILES", 'TILES["none"]', ""),
        ("from .config import SHAPE", "SHAPE[2]", ""),
        ("from .config import Mode", "Mode.WIDE", ""),
        ("from .config import Config", "Config.NEVER", ""),
    ],
)
@pytest.mark.parametrize("here", [True, False])
def test_what_may_change_or_is_none_stays_unknown(
    tmp_path: Path, imports: str, use: str, change: str, here: bool
) -> None:
    file = repository(tmp_path, imports, use, 32)
    place = file if here else file.with_name("config.py")
    if not here and "config.N" in change:
        place, change = file.with_name("config.py"), "def f():\n    global N\n    N = 3"
    place.write_text(place.read_text() + f"\n\n{change}\n")
    assert "threads=2" not in (result_of(file).new_text or "")


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("class C:\n    A = 1\n    B = A + 1", "B", Constant(2)),
        ("class C:\n    A = B\n    B = A", "A", None),
        ("class C:\n    A = 1\n    A = 2", "A", None),
        ("class C:\n    if f():\n        A = 1", "A", None),
        ("class C:\n    A = 1\n    def A(self): pass", "A", None),
        ("class C(metaclass=M):\n    A = 1", "A", None),
        ("class C(Unknown):\n    A = 1", "A", None),
        ("@register\nclass C:\n    A = 1", "A", None),
        ("@dataclasses.dataclass(slots=True)\nclass C:\n    A: int = 1", "A", None),
        ("class D:\n    A = 1\n\n\nclass C(D):\n    if f():\n        A = 2", "A", None),
        ("class C(enum.Enum):\n    A = 1", "A", Member(1)),
        ("class C(enum.Enum):\n    A = enum.auto()", "A", None),
        ("class C(enum.Enum):\n    A = 1\n    def __new__(cls, value): pass", "A", None),
        ("class C(enum.IntEnum):\n    A = '1'", "A", None),
        ("class C(enum.Flag):\n    A = 1", "A", None),
        ("class C(int):\n    A = 1", "A", None),
    ],
)
def test_classes(tmp_path: Path, text: str, name: str, expected: object) -> None:
    file = tmp_path / "m.py"
    file.write_text(f"import dataclasses\nimport enum\n\n\n{text}\n")
    symbols = Symbols()
    assert symbols.part(symbols.defined(file, "C"), name) == expected


def test_host_functions_of_a_module_keep_their_names(tmp_path: Path) -> None:
    text = kernel(f"{LIB}\nfrom . import host", rows="32").replace("    add =", "    host.prepared(M)\n    add =")
    root = library(tmp_path, {"ops/k.py": text, "ops/host.py": "def prepared(x):\n    return x\n"})
    assert "    host.prepared(M)\n" in migrated(root / "ops/k.py")
    plain = kernel("from . import host", rows="32").replace("    add = make_add(2.0, 32)\n", "    host.prepared(M)\n")
    plain = plain.replace("            scaled(a, 32, 64)\n            add(a)\n", "")
    (root / "ops/k.py").write_text(plain)
    assert "    host.prepared(M)\n" in migrated(root / "ops/k.py")
