from collections.abc import Mapping
LIMITS_2026_06: Mapping[str, str] = {}
