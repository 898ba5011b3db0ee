"""Turns the Python of a prim_func or macro into Python that traces itself.

Control flow, assignments and expression statements become calls of the hooks (``hooks.py``); everything else stays
what it is, with its line numbers, so that closures, helpers and constants work as in Python.
"""

from __future__ import annotations
import __future__

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.rewrite_expressions import HOOKS, Expressions, hook, lazy
from tl2npu.simulator.ir.stmt import Site


def traced(function: Callable[..., Any], hooks: Any) -> Callable[..., Any]:
    """A function with the same closure and globals whose body reports to ``hooks`` while it runs.

    Raises TraceError for what is no plain function, or where its source cannot be found.
    """
    function = inspect.unwrap(function)
    source_of(function)
    lines, first = lines_of(function)
    node = parsed(lines)
    assert isinstance(node, ast.FunctionDef)
    node.decorator_list = []
    node.returns = None
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    for argument in (*arguments, node.args.vararg, node.args.kwarg):
        if argument is not None:
            argument.annotation = None
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    names = [*function.__code__.co_freevars, HOOKS]
    node.body = Rewriter().block(node.body)
    outer = ast.FunctionDef(
        name="__outer__",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=n) for n in names], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        body=[node, ast.Return(ast.Name(node.name, ast.Load()))],
        decorator_list=[],
    )
    if hasattr(outer, "type_params"):
        outer.type_params = []
    module = ast.Module(body=[outer], type_ignores=[])
    _place(module, max(first, 1) - 1)
    space: dict[str, Any] = {}
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    exec(compile(module, function.__code__.co_filename, "exec", flags, dont_inherit=True), {}, space)
    inner: Any = space["__outer__"](*(_content(c) for c in function.__closure__ or ()), hooks)
    result = type(inner)(
        inner.__code__, function.__globals__, inner.__name__, function.__defaults__, _closure(inner, function)
    )
    result.__kwdefaults__ = function.__kwdefaults__
    result.__qualname__ = function.__qualname__
    result.__module__ = function.__module__
    return result  # type: ignore[no-any-return]


def source_of(function: Any) -> ast.FunctionDef:
    """The syntax tree of a function, as :func:`definition_of` has it.

    Raises TraceError where there is none: a lambda, a callable object, code without a source file.
    """
    name = getattr(function, "__qualname__", repr(function))
    if not inspect.isfunction(function):
        raise TraceError(f"{name} is not a plain function; prim_func and macro decorate functions")
    place = Site(function.__code__.co_filename, function.__code__.co_firstlineno)
    try:
        node = definition_of(function)
    except (OSError, TypeError, SyntaxError) as error:
        raise TraceError(f"the source of {name} cannot be read: {error}", place) from None
    if not isinstance(node, ast.FunctionDef):
        raise TraceError(f"{name} is not a plain function; prim_func and macro decorate functions", place)
    return node


def lines_of(function: Any) -> tuple[list[str], int]:
    """``inspect.getsourcelines``, which splits a file into tokens to find where a function ends. Here the tree of the
    file tells, as all of its functions are asked for. Raises OSError or TypeError."""
    lines, start, node = _found(function)
    return (inspect.getblock(lines[start:]) if node is None else lines[start : node.end_lineno]), start + 1


def definition_of(function: Any) -> ast.stmt | None:
    """What defines a function, to look at and not to change; with the lines of the file. Raises SyntaxError, too."""
    lines, start, node = _found(function)
    if node is not None:
        return node
    own = parsed(inspect.getblock(lines[start:]))
    return None if own is None else ast.increment_lineno(own, start)


def _found(function: Any) -> tuple[list[str], int, ast.stmt | None]:
    lines, start = inspect.findsource(inspect.unwrap(function))
    return lines, start, _functions("".join(lines)).get(start + 1)


@lru_cache(maxsize=4)
def _functions(text: str) -> dict[int, ast.stmt]:
    """The functions of a file by their first line, which may be that of a decorator; empty for what is no Python."""
    try:
        blocks: list[ast.AST] = [ast.parse(text)]
    except SyntaxError:
        return {}
    for block in blocks:  # which grows
        blocks += [part for part in ast.iter_child_nodes(block) if isinstance(part, _BLOCKS)]
    functions = [part for part in blocks if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return {min(part.lineno for part in (node, *node.decorator_list)): node for node in functions}


_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)


def parsed(lines: list[str]) -> ast.stmt | None:
    """The statement that some lines of a file are; its first line is 1.

    The lines may be indented, and comments in them less so than the code. Raises SyntaxError.
    """
    text = "".join(lines).replace("\r\n", "\n").replace("\r", "\n")
    if not text[:1].isspace():
        body = ast.parse(text).body
        return body[0] if body else None
    around = ast.parse("if True:\n" + text).body[0]
    assert isinstance(around, ast.If)
    _place(around.body[0], -1)
    return around.body[0]


def _place(root: ast.AST, below: int) -> None:
    """Moves a tree down by some lines. Nodes that have no place take that of the statement around them, also where it
    spans lines: Python has a call of a method at its last one."""
    pending = [(root, 1, 0)]
    while pending:
        node, line, column = pending.pop()
        if "lineno" in node._attributes:
            if not hasattr(node, "lineno"):
                node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
                node.col_offset = node.end_col_offset = column  # type: ignore[attr-defined]
            elif isinstance(node, ast.stmt):
                line, column = node.lineno, node.col_offset
            node.lineno += below  # type: ignore[attr-defined]
            node.end_lineno += below  # type: ignore[attr-defined]
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                if value._fields:  # contexts and operators are shared, and have no place
                    pending.append((value, line, column))
            elif type(value) is list:
                pending += [(item, line, column) for item in value if isinstance(item, ast.AST)]


def launches(body: Iterable[ast.stmt]) -> bool:
    """True if a ``with T.Kernel(...)`` stands in some code, outside of the functions in it."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.With) and any(_called(item.context_expr) == "Kernel" for item in node.items):
            return True
        pending.extend(ast.iter_child_nodes(node))
    return False


@lru_cache(maxsize=4)
def is_npu(function: Any) -> bool:
    """True if a ``T.Kernel(..., is_npu=True)`` stands in the function, or no T.Kernel at all."""
    kernels = [n for n in ast.walk(source_of(inspect.unwrap(function))) if _called(n) == "Kernel"]
    return not kernels or any(k.arg == "is_npu" for n in kernels for k in n.keywords)  # type: ignore[attr-defined]


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")


def _closure(inner: Any, function: Any) -> tuple[Any, ...] | None:
    """The cells of the original function, so that a name that is bound later is seen."""
    original = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    mine = dict(zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True))
    return tuple(original.get(name, cell) for name, cell in mine.items()) or None


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # the cell itself is put in its place, and filled later


class Rewriter(Expressions):
    """Rewrites statements into lists of statements; expressions by ``visit``."""

    def __init__(self) -> None:
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"__tl2npu_{self.count}"

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A statement list, never empty."""
        return [new for old in body for new in self.statement(old)] or [ast.Pass()]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements that replace one."""
        rule = getattr(self, f"do_{type(node).__name__}", None)
        new: list[ast.stmt] = rule(node) if rule else [self.visit(node)]
        for statement in new:
            if not hasattr(statement, "lineno"):
                ast.copy_location(statement, node)
        return new

    def do_FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:
        return [node]  # a macro or helper of its own

    def do_ClassDef(self, node: ast.ClassDef) -> list[ast.stmt]:
        return [node]

    def do_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        return [ast.Expr(hook("emit", self.visit(node.value)))]

    def _refused(self, node: ast.stmt, what: str) -> list[ast.stmt]:
        return [ast.Expr(hook("refuse", ast.Constant(what)))]

    def do_Try(self, node: ast.Try) -> list[ast.stmt]:
        return self._refused(node, "try")

    def do_TryStar(self, node: ast.stmt) -> list[ast.stmt]:
        return self._refused(node, "try")

    def do_Match(self, node: ast.stmt) -> list[ast.stmt]:
        return self._refused(node, "match")

    def do_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        test = hook("asserted", self.visit(node.test))
        return [ast.Assert(test, self.visit(node.msg) if node.msg is not None else None)]

    def do_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        return [node]

    def do_Return(self, node: ast.Return) -> list[ast.stmt]:
        return [ast.Return(hook("result", self.visit(node.value) if node.value else ast.Constant(None)))]

    # loops and branches

    def framed(self, bodies: list[list[ast.stmt]], targets: list[ast.expr]) -> tuple[ast.stmt, str, list[str]]:
        """The statement that remembers names before a loop or branch, the frame's name, and the names."""
        names = sorted({n for t in targets for n in _stored(t)} | {n for b in bodies for s in b for n in _stored(s)})
        name = self.fresh()
        listed = ast.Tuple([ast.Constant(n) for n in names], ast.Load())
        readers = [lazy(ast.Name(n, ast.Load())) for n in names]
        return ast.Assign([ast.Name(name, ast.Store())], hook("frame", listed, *readers)), name, names

    def closed(self, frame: str, names: list[str], place: str) -> list[ast.stmt]:
        """The statements that give names back what they were."""
        if not names:
            return []
        readers = [lazy(ast.Name(n, ast.Load())) for n in names]
        target = ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
        return [ast.Assign([target], hook("after", ast.Name(frame, ast.Load()), ast.Constant(place), *readers))]

    def do_For(self, node: ast.For) -> list[ast.stmt]:
        if node.orelse:
            return self._refused(node, "else behind a loop")
        known = [ast.unparse(t) for t in _targets(node.target)] if _simple(node.target) else []
        names = ast.List([ast.Constant(name) for name in known], ast.Load())
        before, frame, assigned = self.framed([node.body], [node.target])
        loop = ast.For(
            target=node.target,
            iter=hook("loop", self.visit(node.iter), names, ast.Name(frame, ast.Load())),
            body=self.block(node.body),
            orelse=[],
        )
        return [before, loop, *self.closed(frame, assigned, "loop")]

    def do_While(self, node: ast.While) -> list[ast.stmt]:
        if node.orelse:
            return self._refused(node, "else behind a loop")
        before, frame, assigned = self.framed([node.body], [])
        test = hook("while_", lazy(self.visit(node.test)), ast.Name(frame, ast.Load()))
        loop = ast.For(target=ast.Name(self.fresh(), ast.Store()), iter=test, body=self.block(node.body), orelse=[])
        return [before, loop, *self.closed(frame, assigned, "loop")]

    def do_If(self, node: ast.If) -> list[ast.stmt]:
        name = self.fresh()

        def known() -> ast.expr:
            return ast.Name(name, ast.Load())

        def end() -> ast.stmt:
            return ast.Expr(hook("end_branch", known()))

        test = self.visit(node.test)
        before, frame, assigned = self.framed([node.body], [])
        result: list[ast.stmt] = [
            before,
            ast.Assign([ast.Name(name, ast.Store())], hook("condition", test, ast.Name(frame, ast.Load()))),
            ast.If(hook("then", known()), [*self.block(node.body), end(), *self.closed(frame, assigned, "branch")], []),
        ]
        if node.orelse:
            before, frame, assigned = self.framed([node.orelse], [])
            test = hook("again", known(), ast.Name(frame, ast.Load()))
            arm = [*self.block(node.orelse), end(), *self.closed(frame, assigned, "branch")]
            result += [before, ast.Expr(test), ast.If(hook("orelse", known()), arm, [])]
        return result

    def do_Break(self, node: ast.Break) -> list[ast.stmt]:
        return [ast.If(hook("break_"), [ast.Break()], [])]

    def do_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [ast.If(hook("continue_"), [ast.Continue()], [])]

    def do_With(self, node: ast.With) -> list[ast.stmt]:
        items = []
        for item in node.items:
            targets = _targets(item.optional_vars) if item.optional_vars is not None else []
            many = isinstance(item.optional_vars, (ast.Tuple, ast.List))
            names = ast.List([ast.Constant(ast.unparse(t)) for t in targets], ast.Load())
            call = hook("enter", self.visit(item.context_expr), names, ast.Constant(many))
            items.append(ast.withitem(call, item.optional_vars))
        return [ast.With(items=items, body=self.block(node.body))]

    # assignments

    def do_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self.assigned(node.targets[0], value)
        name = self.fresh()
        result: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], hook("once", value))]
        for target in node.targets:
            result += self.assigned(target, ast.Name(name, ast.Load()))
        return result

    def assigned(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """``target = value``."""
        if isinstance(target, ast.Name):
            return [ast.Assign([target], self._bound(target.id, value))]
        if isinstance(target, ast.Subscript):
            return [ast.Expr(hook("store", self.visit(target.value), self.key(target.slice), value))]
        if isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(t, ast.Starred) for t in target.elts):
            name = self.fresh()
            count = ast.Constant(len(target.elts))
            result: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], hook("unpack", value, count))]
            for number, part in enumerate(target.elts):
                item = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(number), ast.Load())
                result += self.assigned(part, item)
            return result
        return [ast.Assign([target], value)]

    def do_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if not isinstance(node.target, ast.Name):
            return self.assigned(node.target, self.visit(node.value)) if node.value is not None else [ast.Pass()]
        name = node.target.id
        old = lazy(ast.Name(name, ast.Load()))
        value = self.visit(node.value) if node.value is not None else ast.Constant(None)
        given = ast.Constant(node.value is not None)
        call = hook("annotate", ast.Constant(name), self.visit(node.annotation), value, given, old)
        return [ast.Assign([ast.Name(name, ast.Store())], call)]

    def do_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        target, value = node.target, self.visit(node.value)
        if isinstance(target, ast.Name):
            result = ast.BinOp(ast.Name(target.id, ast.Load()), node.op, value)
            return [ast.Assign([ast.Name(target.id, ast.Store())], self._bound(target.id, result))]
        if isinstance(target, ast.Subscript):
            old = ast.arguments(
                posonlyargs=[], args=[ast.arg(arg="__old__")], kwonlyargs=[], kw_defaults=[], defaults=[]
            )
            change = ast.Lambda(old, ast.BinOp(ast.Name("__old__", ast.Load()), node.op, value))
            return [ast.Expr(hook("update", self.visit(target.value), self.key(target.slice), change))]
        return [ast.AugAssign(target, node.op, value)]

    def _bound(self, name: str, value: ast.expr) -> ast.expr:
        return hook("bind", ast.Constant(name), value, lazy(ast.Name(name, ast.Load())))

    def key(self, item: ast.expr) -> ast.expr:
        """The index of a subscript as an expression of its own."""
        if isinstance(item, ast.Slice):
            bounds = (
                self.visit(b) if b is not None else ast.Constant(None) for b in (item.lower, item.upper, item.step)
            )
            return hook("slice", *bounds)
        if isinstance(item, ast.Tuple):
            return ast.Tuple([self.key(i) for i in item.elts], ast.Load())
        return self.visit(item)  # type: ignore[no-any-return]


def _targets(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _simple(target: ast.expr) -> bool:
    return all(isinstance(t, ast.Name) for t in _targets(target))


def _stored(node: ast.AST) -> Iterator[str]:
    """The names that a statement assigns, not those of functions in it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _stored(child)
