"""Names that only GPU TileLang has."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, STORE, TILES, findings, source


def found(body: str, **settings: str) -> list[str]:
    return [f.message for f in findings(source(TILES + body, **settings)) if f.code == "TL897"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("acc = T.alloc_local((1,), 'float32')", "alloc_local"),
        ("acc = T.alloc_var(T.bfloat16)", "bfloat16"),
        ("T.annotate_safe_value({a: 0.0})", "annotate_safe_value"),
    ],
)
def test_names_that_do_not_exist(body: str, name: str) -> None:
    assert f"T.{name} does not exist in Ascend TileLang" in found(f"{LOAD}{body}\nT.tile.exp(b, a)\n{STORE}")


@pytest.mark.parametrize(
    ("call", "name"), [("T.fill(b, 0)", "tile.fill"), ("T.clear(b)", "tile.fill"), ("T.gemm(a, a, b)", "gemm_v0")]
)
def test_the_operator_to_write_is_named(call: str, name: str) -> None:
    every = findings(source(f"{TILES}{LOAD}{call}\nT.tile.exp(b, a)\n{STORE}"))
    assert [item.help for item in every if item.code == "TL897"] == [f"write `T.{name}`"]


@pytest.mark.parametrize("args", ["dtype=T.float16", "n, dtype=T.float16"])
def test_types_as_values(args: str) -> None:
    assert found(f"{LOAD}T.tile.exp(b, a)\n{STORE}", args=args) == [
        'T.float16 is a function in Ascend TileLang; write the element type as "float16"'
    ]


def test_types_as_functions_and_annotations() -> None:
    params = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), n: T.int32, s: T.float32'
    body = f"{LOAD}T.tile.mul(b, a, T.float32(2))\n{STORE}"
    assert found(body, params=params) == []


@pytest.mark.parametrize(
    "value", ["T.exp(2.0)", "1.0 / T.sqrt(T.cast(64, 'float32'))", "T.rsqrt(T.cast(cid, 'float32'))", "T.max(cid, 2)"]
)
def test_functions_of_numbers_are_not_worked_out(value: str) -> None:
    """The generator of code stops at "Unresolved call Op(tir.sqrt)", whatever the argument is."""
    told = found(f"{LOAD}\nscale = {value}\nT.tile.mul(b, a, scale)\n{STORE}")
    assert len(told) == (value != "T.max(cid, 2)")
