"""The reason why a form cannot be reached."""

from __future__ import annotations

import libcst as cst


class Blocked(Exception):
    """A form cannot be reached: ``code`` is the rule, ``node`` the place, the message the reason."""

    def __init__(self, code: str, node: cst.CSTNode, message: str) -> None:
        super().__init__(message)
        self.code, self.node, self.message = code, node, message
