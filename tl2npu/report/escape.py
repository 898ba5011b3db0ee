"""Text from elsewhere (paths, names, messages, source lines) made harmless for people who read it."""

from __future__ import annotations

import re

# Control characters, among them those that steer a terminal; line and paragraph separators; the characters that turn
# the direction of text round, with which source can be made to look like other source.
_STEERING = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """One line in which every character shows: ``\\n`` and ``\\x1b`` as Python writes them. Tabs stay."""
    return _STEERING.sub(lambda match: match.group().encode("unicode_escape").decode("ascii"), text)
