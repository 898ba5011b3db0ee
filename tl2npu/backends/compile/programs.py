"""Generated programs, and whether two are the same."""

from __future__ import annotations

import re

_FUNCTION = re.compile(r'extern "C" __global__ \w+ void (\w+)\(')
_ADDRESSES = (
    re.compile(r"(GetWithOffset<[^>]*>\([^,()]*, )\d+(?=\))"),  # ascendc: elements, then the address
    re.compile(r"(TASSIGN\(\w+, )\d+(?=\))"),  # pto: where a tile lies
    re.compile(r"(pto::Stride<[^>]*>\(\), )\d+(?=[,)])"),  # pto: where a copy's tile lies
)


def normal(text: str) -> str:
    """A program without the addresses of its buffers and the name of its kernel."""
    name = _FUNCTION.search(text)
    if name is not None:
        text = re.sub(rf"\b{re.escape(name.group(1))}\b", "KERNEL", text)
    for address in _ADDRESSES:
        text = address.sub(r"\g<1>ADDRESS", text)
    return text


def same(one: str, other: str) -> bool:
    """True for programs that are equal but for buffer addresses and the name of the kernel."""
    return normal(one) == normal(other)
