"""Products of small tiles use one thread, unless the user has chosen."""

from __future__ import annotations

from tl2npu.verify.threads import VARIABLE, one_thread


def test_one_thread_by_default() -> None:
    assert one_thread({"HOME": "/h"}) == {"HOME": "/h", VARIABLE: "1"}


def test_the_users_number_stays() -> None:
    assert one_thread({VARIABLE: "4"}) == {VARIABLE: "4"}
