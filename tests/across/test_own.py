"""Dicts, classes and instances of the file itself are read like those of other modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.across.support import CALL, migrated, result_of

KERNEL = """
import enum
import tilelang
import tilelang.language as T
from dataclasses import dataclass, field
from types import SimpleNamespace

N = {rows}
{head}


@tilelang.jit(out_idx=[-1])
def factory(M, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, 64), dtype), B: T.Tensor((M, 64), dtype)):
        with T.Kernel(T.ceildiv(M, {use}), threads=128) as bx:
            a = T.alloc_shared(({use}, 64), dtype)
            T.copy(A[bx * {use}, 0], a)
            for i, j in T.Parallel({use}, 64):
                a[i, j] = a[i, j] * 2.0
            T.copy(a, B[bx * {use}, 0])

    return main
{end}
"""
WAYS = {
    "dict": ('SIZES = {"rows": N, "other": print}', 'SIZES["rows"]'),
    "nested dict": ('SIZES = {"inner": {1: N}}', "SIZES['inner'][1]"),
    "dict()": ("SIZES = dict(rows=N, cols=64)", 'SIZES["rows"]'),
    "dict of a dict": ('BASE = {"rows": N}\nSIZES = {**BASE, "cols": 64}', 'SIZES["rows"]'),
    "class": ("class Config:\n    ROWS = N\n    COLS: int = 64", "Config.ROWS"),
    "enumeration": ("class Mode(enum.IntEnum):\n    WIDE = N", "Mode.WIDE"),
    "instance": ("class Config:\n    rows = N\n\n\ncfg = Config()", "cfg.rows"),
    "dataclass": ("@dataclass\nclass Config:\n    rows: int = N\n\n\ncfg = Config()", "cfg.rows"),
    "fields by position": (
        "@dataclass\nclass Config:\n    cols: int\n    rows: int\n\n\ncfg = Config(64, N)",
        "cfg.rows",
    ),
    "fields by name": (
        "@dataclass(frozen=True)\nclass Config:\n    rows: int = 5\n    cols: int = 64\n\n\ncfg = Config(rows=N)",
        "cfg.rows",
    ),
    "__init__": (
        'class Config:\n    """Sizes."""\n\n    def __init__(self, half, cols=64):\n        self.half = half\n'
        "        self.rows = self.half * 2\n        self.cols = cols\n\n\ncfg = Config(N // 2 if N % 2 == 0 else 3.5)",
        "cfg.rows",
    ),
    "a name in the class": ("class Config:\n    HALF = N\n    ROWS = HALF\n\n\ncfg = Config()", "cfg.ROWS"),
    "namespace": ("cfg = SimpleNamespace(rows=N)", "cfg.rows"),
    "annotated": ("cfg: object = SimpleNamespace(rows=N, more=SimpleNamespace)", "cfg.rows"),
}


def file(root: Path, head: str, use: str, rows: int, end: str = "") -> Path:
    path = root / "k.py"
    path.write_text(KERNEL.format(head=head, use=use, rows=rows, end=end).lstrip())
    return path


def threads(path: Path) -> str:
    """What the launch says: ``2`` only where the rows are known to be even, ``1`` where they are known to be odd."""
    new = result_of(path).new_text
    assert new is not None
    return new.split("threads=")[1].split(", is_npu")[0]


@pytest.mark.parametrize("way", [name for name in WAYS if name != "__init__"])
def test_the_value_is_known_and_the_text_stays(tmp_path: Path, way: str) -> None:
    """Both vector cores take half of 32 rows each, and cannot of 7."""
    head, use = WAYS[way]
    new = migrated(file(tmp_path, head, use, 32))
    assert "threads=2" in new
    assert f"T.Parallel({use}, 64)" in new
    assert f"\n{head}\n" in new
    assert "\u00b7" not in new
    assert threads(file(tmp_path, head, use, 7)) == "1"


def test_attributes_that_an_init_works_out(tmp_path: Path) -> None:
    head, use = WAYS["__init__"]
    head = head.replace("N // 2 if N % 2 == 0 else 3.5", "N // 2")
    assert threads(file(tmp_path, head, use, 32)) == "2"
    assert threads(file(tmp_path, head.replace("* 2", "* 2 + 1"), use, 32)) == "1"


def test_old_and_new_agree(tmp_path: Path) -> None:
    for way in ("dict", "dataclass", "namespace"):
        assert "threads=2" in migrated(file(tmp_path, *WAYS[way], 32), CALL)


@pytest.mark.parametrize(
    ("way", "end"),
    [
        ("dict", 'SIZES["rows"] = 7'),
        ("dict", "SIZES.update(rows=7)"),
        ("dict", "def change():\n    global SIZES\n    SIZES = {'rows': 7}"),
        ("dict", "other = SIZES"),
        ("dict", "if factory:\n    SIZES = {'rows': 7}"),
        ("class", "Config.ROWS = 7"),
        ("class", "setattr(Config, 'ROWS', 7)"),
        ("instance", "cfg.rows = 7"),
        ("instance", "Config.rows = 7"),
        ("instance", "change(cfg)"),
        ("instance", "cfg.change()"),
        ("dataclass", "cfg.rows = 7"),
        ("namespace", "cfg.rows = 7"),
        ("namespace", "def change(cfg):\n    return cfg"),
        ("dict", "def change(SIZES):\n    return SIZES['rows']"),
    ],
)
def test_what_may_change_is_not_known(tmp_path: Path, way: str, end: str) -> None:
    """Nor is what a name means that something in the file binds again."""
    assert threads(file(tmp_path, *WAYS[way], 32, end)) == f"1 if {WAYS[way][1]} % 2 else 2"


def test_a_frozen_instance_may_be_handed_on(tmp_path: Path) -> None:
    assert threads(file(tmp_path, *WAYS["fields by name"], 32, "show(cfg)")) == "2"


@pytest.mark.parametrize(
    "head",
    [
        "class Config(Base):\n    pass\n\n\ncfg = Config()",
        "class Config:\n    rows = 32\n\n    def __getattribute__(self, name):\n        return 7\n\n\ncfg = Config()",
        "class Config:\n    rows = 32\n\n    def __init__(self):\n        self.change()\n\n\ncfg = Config()",
        "class C:\n    def __init__(self, odd):\n        self.rows = 32\n        self.rows = 7\n\n\ncfg = C(1)",
        "class Config:\n    @property\n    def rows(self):\n        return 32\n\n\ncfg = Config()",
        "@dataclass\nclass C:\n    rows: int = 8\n\n    def __post_init__(self):\n        self.rows = 7\n\n\ncfg = C()",
        "@dataclass\nclass Config:\n    rows: int = field(default=32)\n\n\ncfg = Config()",
        "@dataclass(init=False)\nclass Config:\n    rows: int = 32\n\n\ncfg = Config()",
        "@register\nclass Config:\n    rows = 32\n\n\ncfg = Config()",
        "class Config(metaclass=Meta):\n    rows = 32\n\n\ncfg = Config()",
        "class Config:\n    rows = 32\n\n\ncfg = make(Config)",
        "class Config:\n    rows = 32\n\n\ncfg = Config(7)",
        "@dataclass\nclass Config:\n    rows: int = 32\n\n\ncfg = Config(*sizes)",
        "@dataclass\nclass Config:\n    rows: int = 32\n\n\ncfg = Config(rows=size())",
        "cfg = SimpleNamespace(**sizes)",
        "cfg = SimpleNamespace(rows=size())",
    ],
)
def test_what_is_no_plain_value_is_not_known(tmp_path: Path, head: str) -> None:
    assert threads(file(tmp_path, head, "cfg.rows", 32)) == "1 if cfg.rows % 2 else 2"
