"""Keys of pass_configs in all their spellings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tl2npu.dialects.pass_configs import ASCEND_KEYS, STRING_OF, canonical_key

SYNC = "TL_ASCEND_AUTO_SYNC"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC", SYNC),
        ("PassConfigKey.TL_ASCEND_AUTO_SYNC", SYNC),
        ("tl.transform.pass_config.PassConfigKey.TL_ASCEND_AUTO_SYNC.value", SYNC),
        ("TL_ASCEND_AUTO_SYNC", SYNC),
        ('PassConfigKey["TL_ASCEND_AUTO_SYNC"]', SYNC),
        ('"tl.ascend_auto_sync"', SYNC),
        ("'tl.ascend_auto_sync'", SYNC),
        ("tl.ascend_auto_sync", SYNC),
        ('"tl.ascend_auto_cross_core_sync"', "TL_ASCEND_AUTO_CV_SYNC"),
        ('"tl.ascend_auto_cv_combine"', "TL_ASCEND_AUTO_CV_COMBINE"),
        ('"tl.ascend_memory_planning"', "TL_ASCEND_MEMORY_PLANNING"),
        ('"tl.Simplify"', "TL_SIMPLIFY"),
        ("tl.ascend_auto_cv_sync", None),
        ('"TL_ASCEND_AUTO_SYNC"', None),
        ("\"tl.ascend_auto_sync'", None),
        ("key", None),
        ("PassConfigKey", None),
        ("", None),
    ],
)
def test_canonical_key(text: str, key: str | None) -> None:
    assert canonical_key(text) == key


@given(
    st.sampled_from(sorted(STRING_OF)), st.sampled_from(["{m}", "a.{m}", "a.b.{m}.value", "'{s}'", '"{s}"', " {s} "])
)
def test_every_key_in_every_spelling(member: str, spelling: str) -> None:
    assert canonical_key(spelling.format(m=member, s=STRING_OF[member])) == member


def test_tables() -> None:
    assert len(ASCEND_KEYS) == 4
    assert ASCEND_KEYS.items() <= STRING_OF.items()
    assert len(set(STRING_OF.values())) == len(STRING_OF) == 23
