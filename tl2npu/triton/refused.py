"""Why a Triton kernel stays as it is."""

from __future__ import annotations


class Refused(Exception):
    """A kernel that cannot be translated: a rule code, a line of the Triton file, and what is in the way there."""

    def __init__(self, code: str, line: int, message: str) -> None:
        super().__init__(f"{code} line {line}: {message}")
        self.code, self.line, self.message = code, line, message


class Undecided(Refused):
    """A launch that depends on ``test``, a condition of the host code."""

    def __init__(self, code: str, line: int, message: str, test: str) -> None:
        super().__init__(code, line, message)
        self.test = test
