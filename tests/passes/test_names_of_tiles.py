"""Tiles that passes add are named for what they hold."""

from __future__ import annotations

import re

import pytest

from tests.passes.gpu.support import gpu_file, migrated
from tl2npu.passes.names.tiles import LONGEST

TENSORS = ", ".join(f'{name}: T.Tensor((64, 64), "{dtype}")' for name, dtype in (("X", "float16"), ("Y", "float16")))
LONG = "routed_expert_weights_shared"


def added(body: str, names: str = "x y", dtype: str = "float16") -> list[str]:
    """The tiles of the new text that are none of the author's."""
    first, last = names.split()[0], names.split()[-1]
    tiles = [f'{name} = T.alloc_shared((64, 64), "{dtype}")' for name in names.split()]
    tiles += ['s = T.alloc_fragment((64,), "float32")', 'f = T.alloc_fragment((64, 64), "float32")']
    lines = [*tiles, f"T.copy(X, {first})", "for i, j in T.Parallel(64, 64):", f"    {body}", f"T.copy({last}, Y)"]
    new = migrated(gpu_file(TENSORS, "\n".join(lines)))
    return sorted(set(re.findall(r"(\w+) = T\.alloc", new)) - {*names.split(), "s", "f"})


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("y[i, j] = x[i, j] * 2.0 + 1.0", ["x_f32"]),  # computed in float32
        ("y[i, j] = T.exp2(x[i, j])", ["x_f32"]),
        ("y[i, j] = f[i, j] + f[i, j] * T.tanh(f[i, j])", ["f_scaled", "f_sigmoid", "y_f32"]),
    ],
)
def test_a_word_for_what_is_in_it(body: str, names: list[str]) -> None:
    found = added(body)
    assert not [name for name in found if re.search(r"_tmp|\d+$", name.replace("_f32", ""))], found
    assert set(names) & set(found)


def test_no_name_is_too_long() -> None:
    found = added(f"y[i, j] = {LONG}[i, j] * 2.0 + 1.0", f"{LONG} y")
    assert found
    assert max(map(len, found)) <= LONGEST
    assert all(name.startswith("routed_") for name in found)


def test_a_message_names_the_authors_tile_for_one_with_a_new_name() -> None:
    """The name that a tile was made under says for what; the new one need not begin so."""
    from tl2npu.passes.provenance import in_authors_words

    assert in_authors_words("`w_exp` overflows", {"w_exp"}, {"acc"}, {"w_exp": "acc_tmp_2"}) == (
        "a tile added for `acc` overflows"
    )
    assert in_authors_words("`w_exp` overflows", {"w_exp"}, {"acc"}) == "an added tile overflows"
