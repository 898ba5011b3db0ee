"""One run over several machines: each takes a part of the files."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from tl2npu.files import Found


def shard(files: Sequence[Found], number: int, count: int) -> list[Found]:
    """The part ``number`` (from 1) of ``count``, in the order of ``files``.

    The parts are equal to one file, and the same wherever the tree lies: files are dealt in the order of the hashes of
    their paths below the directories that were given, so that neighbours, which are often alike, do not stay together.
    """
    order = sorted(range(len(files)), key=lambda index: (_hash(files[index]), index))
    mine = set(order[number - 1 :: count])
    return [found for index, found in enumerate(files) if index in mine]


def _hash(found: Found) -> bytes:
    path = found.path.relative_to(found.root) if found.path.is_relative_to(found.root) else found.path
    return blake2b(path.as_posix().encode("utf-8", "surrogateescape"), digest_size=16).digest()
