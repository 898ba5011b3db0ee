"""Allocations that one assignment makes: each becomes a statement, and is migrated like one."""

from __future__ import annotations

import pytest

from tests.passes.support import developer, migrated, same_results, vector_file

WORK = """
T.copy(A[cid * 32 + vid * 16, 0], a)
T.copy(B[cid * 32 + vid * 16, 0], b)
T.tile.add(o, a, b)
T.copy(o, O[cid * 32 + vid * 16, 0])
"""
UB = 'T.alloc_ub((16, 64), "float32")'
APART = "".join(f"{name} = {UB}\n" for name in "abo")


@pytest.mark.parametrize(
    "together",
    [
        f"a, b, o = {UB}, {UB}, {UB}\n",
        f"[a, b] = [{UB}, {UB}]\no = {UB}\n",
        f"(a, (b, o)) = ({UB}, ({UB}, {UB}))\n",
        f"a, b, o = (\n    {UB},\n    {UB},\n    {UB},\n)\n",
        f"a, row, b = {UB}, 0, {UB}\no = {UB}\n",
    ],
)
def test_each_allocation_gets_a_line(together: str) -> None:
    text = vector_file(together + WORK)
    new = developer(text)
    for name in "abo":
        assert any(line.strip().startswith(f"{name} = T.alloc_shared((") for line in new.splitlines())
    assert "TL207" in {change.code for change in migrated(text).changes}
    same_results(text, new)


def test_the_comment_of_the_line_stays() -> None:
    new = developer(vector_file(f"# operands\na, b = {UB}, {UB}  # both halves\no = {UB}\n" + WORK))
    assert "# operands" in new
    assert "# both halves" in new
