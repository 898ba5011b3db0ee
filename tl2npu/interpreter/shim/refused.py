"""Names of the extensions that cannot be executed here; a use says so, an import does not."""

from __future__ import annotations

from typing import Any

from tl2npu.interpreter.shim.values import fault


class Refused:
    """A name without a meaning here. It may be imported and looked into; a call raises KernelFault with its name."""

    def __init__(self, name: str, why: str) -> None:
        self.name, self.why = name, why

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise fault(f"{self.name} cannot be executed here: {self.why}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Refused(f"{self.name}.{name}", self.why)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.why}>"


def refused(package: str, why: str, names: str) -> dict[str, Refused]:
    """Refused names of a package by name; ``names`` are separated by blanks."""
    return {name: Refused(f"{package}.{name}", why) for name in names.split()}
