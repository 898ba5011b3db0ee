"""Mutants that pass although no rule says that they are equivalent, with the reason; docs/verify.md lists them."""

from __future__ import annotations

SURVIVORS: dict[tuple[str, str], str] = {}
