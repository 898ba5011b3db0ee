"""Names that only served vid go with their last use, also where another kernel of the file has a local of that name."""

from __future__ import annotations

from tests.passes.support import LOAD, STORE, developer, migrated, vector_file

FACTORY = "parts = 2\nhalf = 32 // parts\nunused = 3\n"


def test_a_local_that_served_vid_goes() -> None:
    new = developer(vector_file(LOAD.replace("16", "half") + "T.tile.exp(a, a)\n" + STORE, factory=FACTORY))
    assert "parts" not in new
    assert "unused = 3" in new, "the author's own"


def test_locals_of_other_functions_do_not_keep_it() -> None:
    body = LOAD.replace("16", "half") + "T.tile.exp(a, a)\n" + STORE
    tail = "\n\ndef other():\n    parts = 3\n    unused = parts + 4\n    return parts + unused\n"
    new = migrated(vector_file(body, factory=FACTORY, tail=tail)).new_text or ""
    assert new.count("parts") == tail.count("parts")
    assert new.count("unused = ") == 2
    assert tail in new


def test_a_name_that_a_function_inside_shares_stays() -> None:
    factory = FACTORY + "def more():\n    nonlocal parts\n    parts = 3\n    return parts\n"
    body = LOAD.replace("16", "half") + "T.tile.exp(a, a)\n" + STORE
    assert "parts = 2" in (migrated(vector_file(body, factory=factory)).new_text or "")


def test_an_attribute_of_a_class_is_no_local_of_that_name() -> None:
    """``Config.parts`` is no use of the name ``parts``: the class keeps what the factory loses."""
    body = LOAD.replace("16", "half") + "T.tile.exp(a, a)\n" + STORE
    for attribute in ("parts = 2", "parts: int = 2"):
        tail = f"\n\nclass Config:\n    {attribute}\n\n\nprint(Config.parts)\n"
        new = developer(vector_file(body, factory=FACTORY, tail=tail))
        assert new.count("parts") == tail.count("parts")
        assert tail in new


def test_an_annotated_name_goes_like_any_other() -> None:
    body = LOAD.replace("16", "half") + "T.tile.exp(a, a)\n" + STORE
    new = developer(vector_file(body, factory=FACTORY.replace("parts =", "parts: int =")))
    assert "parts" not in new
