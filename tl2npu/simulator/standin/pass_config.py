"""``tilelang.PassConfigKey``: names that stand for strings; unknown ones are kept by their name."""

from __future__ import annotations

from tl2npu.dialects.pass_configs import STRING_OF


class _Meta(type):
    def __getattr__(cls, name: str) -> _Key:
        if name.startswith("__"):
            raise AttributeError(name)
        plain = name.lower()
        dotted = plain.replace("npuir_", "npuir.", 1) if plain.startswith("npuir_") else plain.replace("tl_", "tl.", 1)
        return _Key(STRING_OF.get(name, dotted))

    def __getitem__(cls, name: str) -> _Key:
        return cls.__getattr__(name)


class _Key(str):
    """A key; ``.value`` is the string, as in an enumeration."""

    value = property(str)


class PassConfigKey(metaclass=_Meta):
    """See the module."""
