"""What was found of a machine: frozen dataclasses that flow to the report and to the backends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """One thing that a backend may need: ``value`` is what was found, None for a thing that is missing.

    ``help`` is the command that mends it, empty where nothing has to be mended; ``wrong`` says why a thing that is
    there cannot be used. ``note`` is what else is worth knowing.
    """

    name: str
    value: str | None
    help: str = ""
    wrong: str = ""
    note: str = ""

    @property
    def usable(self) -> bool:
        """True for what is there and works, as far as that can be told."""
        return self.value is not None and not self.wrong


@dataclass(frozen=True)
class Machine:
    """All findings by name, in order, and for each backend the names of those that it lacks.

    ``python``: the interpreter that was asked. ``targets``: the code generators that ``compile`` can drive there.
    """

    python: str
    findings: Mapping[str, Finding]
    lacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    targets: tuple[str, ...] = ()

    def runs(self, backend: str) -> bool:
        """True if nothing that the backend needs is missing."""
        return not self.lacks[backend]

    def reasons(self, backend: str) -> str:
        """What a backend lacks, each with the command that mends it; empty if nothing."""
        found = [self.findings[name] for name in self.lacks[backend]]
        return "; ".join(
            (f"{item.name}: {item.wrong}" if item.value is not None else f"{item.name} is missing")
            + (f" ({item.help})" if item.help else "")
            for item in found
        )
