"""Names and their values where an expression stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.symbolic import Sym, var


@dataclass(frozen=True)
class Static:
    """A Python value that is no integer: a string, a float, None."""

    value: object


@dataclass(frozen=True, eq=False)
class Closure:
    """A macro parameter: the caller's expression in the caller's environment."""

    node: cst.BaseExpression
    env: Env


@dataclass(frozen=True, eq=False)
class Helper:
    """A macro or a plain Python function of the same file."""

    node: cst.FunctionDef
    env: Env


class Storage:
    """What a name may stand for that holds elements: a buffer of the model."""


Value = Sym | Static | Closure | Helper | Storage


@dataclass(eq=False)
class Env:
    """Names in scope, innermost first."""

    parent: Env | None = None
    values: dict[str, Value] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    shadowed: frozenset[str] = frozenset()

    def unknown(self, name: str) -> Sym:
        """What a name stands for that is bound here to something unknown.

        The first binding of a name in a function is the variable itself; any later one is another unknown, and so is
        one that a function inside hides by a name of its own (``shadowed``).
        """
        if name not in self.values:
            return self.parameter(name)
        self.versions[name] = self.versions.get(name, 0) + 1
        return var(f"{name}@{self.depth}.{self.versions[name]}")

    def parameter(self, name: str) -> Sym:
        """What a parameter, or the first binding of a name, stands for."""
        return var(f"{name}@{self.depth}.0") if name in self.shadowed else var(name)

    @property
    def depth(self) -> int:
        """The number of environments above."""
        return 0 if self.parent is None else self.parent.depth + 1

    def lookup(self, name: str) -> Value | None:
        """The value of a name, None if it is not bound here or above."""
        env: Env | None = self
        while env is not None:
            if name in env.values:
                return env.values[name]
            env = env.parent
        return None

    def snapshot(self) -> Env:
        """The innermost names as they are now."""
        return Env(self.parent, dict(self.values))


NOWHERE = Env()
"""The names in scope of a statement that nothing was read around."""


class Changed(Env):
    """The names of another environment after some of them got new values, also inside the arguments of macros.

    ``changes`` maps a name to its old and its new value; another binding of the same name is left alone.
    """

    def __init__(self, base: Env, changes: Mapping[str, tuple[Sym, Sym]]) -> None:
        super().__init__(base)
        self.base, self.changes = base, changes

    def lookup(self, name: str) -> Value | None:
        """The new value of a changed name, else what the environment below says."""
        found = self.base.lookup(name)
        if isinstance(found, Closure):
            return Closure(found.node, Changed(found.env, self.changes))
        if name in self.changes and found == self.changes[name][0]:
            return self.changes[name][1]
        return found


def entered(helper: Helper, call: cst.Call, env: Env) -> Env | None:
    """The environment in which a call runs a helper; None if its arguments cannot be told."""
    params = (*helper.node.params.posonly_params, *helper.node.params.params, *helper.node.params.kwonly_params)
    names = [param.name.value for param in params]
    inner = Env(helper.env)
    env = env.snapshot()  # the arguments mean what they mean at the call
    position = 0
    for arg in call.args:
        if arg.star:
            return None
        if arg.keyword is not None:
            name = arg.keyword.value
        elif position < len(names):
            name, position = names[position], position + 1
        else:
            return None
        inner.values[name] = Closure(arg.value, env)
    for param in params:
        if param.name.value not in inner.values:
            if param.default is None:
                return None
            inner.values[param.name.value] = Closure(param.default, helper.env)
    return inner
