"""Other spellings of a kernel file: each rewrites a Python tree so that it looks different and means the same.

A spelling is a function of the tree of a module, which it changes in place; False where it found nothing to change.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

import black

Spelling = Callable[[ast.Module], bool]
SPELLINGS: dict[str, Spelling] = {}

_KEYWORDS = {
    "copy": ("src", "dst"),
    "gemm_v0": ("A", "B", "C"),
    "gemm": ("A", "B", "C"),
    "fill": ("buffer", "value"),
    "clear": ("buffer",),
}
_FLIPPED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}
_ALLOCATED = ("alloc_ub", "alloc_L1", "alloc_L0C", "alloc_shared", "alloc_fragment")


def spelling(function: Spelling) -> Spelling:
    SPELLINGS[function.__name__] = function
    return function


def respelled(name: str, text: str) -> str:
    """A file in another spelling, which must find something to change in it, laid out by black."""
    tree = ast.parse(text)
    assert SPELLINGS[name](tree)
    return black.format_str(ast.unparse(ast.fix_missing_locations(tree)), mode=black.Mode(line_length=_width(name)))


def _width(name: str) -> int:
    return 40 if name == "narrow" else 120


# names ---------------------------------------------------------------------------------------------------------------


@spelling
def narrow(tree: ast.Module) -> bool:
    """Nothing but the layout: comments gone, every longer expression broken over lines."""
    return bool(tree.body)


@spelling
def alias(tree: ast.Module) -> bool:
    """The language by another name."""
    names = aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = "dsl"
        if isinstance(node, ast.alias) and node.name in ("tilelang.language", "language"):
            node.asname = "dsl"
    return bool(names)


@spelling
def full_path(tree: ast.Module) -> bool:
    """``tilelang.language.copy`` in place of ``T.copy``."""
    names = aliases(tree)

    class Path(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse("tilelang.language", mode="eval").body if node.id in names else node

        def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
            node.names = [a for a in node.names if node.module != "tilelang" or a.name != "language"]
            return node if node.names else None

        def visit_Import(self, node: ast.Import) -> ast.stmt | None:
            node.names = [a for a in node.names if a.name != "tilelang.language" or not a.asname]
            return node if node.names else None

    Path().visit(tree)
    tree.body[:0] = ast.parse("import tilelang\nimport tilelang.language").body
    return bool(names)


@spelling
def renamed(tree: ast.Module) -> bool:
    """Other names inside of kernels; the automatic flags look at names with ``workspace``, which stay."""
    if any(call.keywords for call in ast.walk(tree) if isinstance(call, ast.Call) and _is_macro_call(tree, call)):
        return False
    for function in device(tree):
        names = sorted(name for name in bound(function) if name != "_" and "workspace" not in name)
        table = {name: f"it{number}" for number, name in enumerate(names)}
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                node.id = table.get(node.id, node.id)
            if isinstance(node, ast.arg):
                node.arg = table.get(node.arg, node.arg)
    return True


@spelling
def imported_jit(tree: ast.Module) -> bool:
    found = False
    for function in [s for s in tree.body if isinstance(s, ast.FunctionDef)]:
        for node in [n for d in function.decorator_list for n in ast.walk(d)]:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "tilelang.jit":
                node.func, found = ast.Name("compiled", ast.Load()), True
    tree.body[:0] = ast.parse("from tilelang import jit as compiled").body if found else []
    return found


# numbers, shapes and types -------------------------------------------------------------------------------------------


@spelling
def numbers_named(tree: ast.Module) -> bool:
    """The numbers of kernels are constants of the module."""
    used: set[int] = set()

    class Named(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.expr:
            if type(node.value) is not int or node.value < 8:
                return node
            used.add(node.value)
            return ast.Name(f"N_{node.value}", ast.Load())

    for function in prim_funcs(tree):
        function.body = [Named().visit(statement) for statement in function.body]
        Named().visit(function.args)
    imports = [number for number, s in enumerate(tree.body) if isinstance(s, (ast.Import, ast.ImportFrom))]
    lines = "".join(f"N_{number} = {number}\n" for number in sorted(used))
    tree.body[imports[-1] + 1 : imports[-1] + 1] = ast.parse(lines).body
    return bool(used)


@spelling
def list_shapes(tree: ast.Module) -> bool:
    found = [call for call in shaped(tree) if isinstance(call.args[0], ast.Tuple)]
    for call in found:
        call.args[0] = ast.List(call.args[0].elts, ast.Load())  # type: ignore[attr-defined]
    return bool(found)


@spelling
def types_named(tree: ast.Module) -> bool:
    """Element types are names of the factory."""
    found = False
    for block, number, function in within_factories(tree):
        table: dict[str, ast.stmt] = {}
        for call in shaped(function):
            kind = call.args[1] if len(call.args) > 1 else None
            if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
                name = ast.Name(f"kind_{kind.value}", ast.Load())
                table[name.id] = ast.Assign([ast.Name(name.id, ast.Store())], kind)
                call.args[1], found = name, True
        block[number:number] = table.values()
    return found


@spelling
def shape_keywords(tree: ast.Module) -> bool:
    found = [call for call in shaped(tree) if attr(call) in _ALLOCATED and len(call.args) == 2]
    for call in found:
        call.keywords[:0] = [ast.keyword("shape", call.args[0]), ast.keyword("dtype", call.args[1])]
        call.args = []
    return bool(found)


@spelling
def allocations_together(tree: ast.Module) -> bool:
    """``a, b = T.alloc_shared(...), T.alloc_shared(...)``."""
    found = False
    for block in blocks(tree):
        for number in range(len(block) - 1, 0, -1):
            first, second = block[number - 1 : number + 1]
            if is_allocation(first) and is_allocation(second) and number % 2:
                targets = ast.Tuple([first.targets[0], second.targets[0]], ast.Store())  # type: ignore[attr-defined]
                values = ast.Tuple([first.value, second.value], ast.Load())  # type: ignore[attr-defined]
                block[number - 1 : number + 1], found = [ast.Assign([targets], values)], True
    return found


@spelling
def allocations_late(tree: ast.Module) -> bool:
    """Each allocation stands above the first statement of its block that uses it."""
    found = False
    for block in blocks(tree):
        rest = [statement for statement in block if not is_allocation(statement)]
        for statement in reversed([s for s in block if is_allocation(s)]):
            name = statement.targets[0].id  # type: ignore[attr-defined]
            rest.insert(next((k for k, s in enumerate(rest) if name in names_in(s)), 0), statement)
        found |= [id(s) for s in rest] != [id(s) for s in block]
        block[:] = rest
    return found


# indices -------------------------------------------------------------------------------------------------------------


@spelling
def commuted(tree: ast.Module) -> bool:
    """``vid * half + cid * rows`` in indices and names of the kernel."""
    found = False
    for part in index_arithmetic(tree):
        for node in ast.walk(part):
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
                node.left, node.right, found = node.right, node.left, True
    return found


@spelling
def distributed(tree: ast.Module) -> bool:
    """``i * b + b`` for ``(i + 1) * b``."""
    found = False
    for part in index_arithmetic(tree):
        for node in ast.walk(part):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.BinOp):
                inner = node.left
                if isinstance(inner.op, ast.Add):
                    node.left = ast.BinOp(inner.left, ast.Mult(), node.right)
                    node.right = ast.BinOp(inner.right, ast.Mult(), copy.deepcopy(node.right))
                    node.op, found = ast.Add(), True
    return found


@spelling
def slices(tree: ast.Module) -> bool:
    """``A[i : i + rows, j : j + columns]`` where a copy gave the start, as the tile beside it says."""
    found = False
    for function in prim_funcs(tree):
        if "npuir" in ast.unparse(tree):
            return False  # a copy has a size there
        for tensor, dims in copies(function):
            index = list(tensor.slice.elts) if isinstance(tensor.slice, ast.Tuple) else [tensor.slice]
            if len(index) < len(dims) or any(isinstance(part, ast.Slice) for part in index):
                continue
            for number, size in zip(range(len(index) - len(dims), len(index)), dims, strict=True):
                end = ast.BinOp(copy.deepcopy(index[number]), ast.Add(), copy.deepcopy(size))
                index[number] = ast.Slice(index[number], end)
            tensor.slice = ast.Tuple(index, ast.Load()) if len(index) > 1 else index[0]
            found = True
    return found


@spelling
def names_inlined(tree: ast.Module) -> bool:
    """Names that a kernel binds once, to arithmetic, are written out."""
    plain = (ast.BinOp, ast.Name, ast.Constant, ast.Load, ast.operator)
    found = False
    for function in prim_funcs(tree):
        assigned = stores(function)
        values: dict[str, ast.expr] = {}
        for block in blocks(function):
            for statement in [s for s in block if isinstance(s, ast.Assign) and isinstance(s.value, ast.BinOp)]:
                (target,) = statement.targets
                if not isinstance(target, ast.Name) or not all(isinstance(n, plain) for n in ast.walk(statement.value)):
                    continue
                if assigned.count(target.id) == 1 and all(
                    assigned.count(name) <= 1 for name in names_in(statement.value)
                ):
                    values[target.id] = statement.value
                    block.remove(statement)
                    found = True

        class Written(ast.NodeTransformer):
            def __init__(self, values: dict[str, ast.expr]) -> None:
                self.values = values

            def visit_Name(self, node: ast.Name) -> ast.AST:
                return self.visit(copy.deepcopy(self.values[node.id])) if node.id in self.values else node

        for statement in function.body:
            Written(values).visit(statement)
    return found


# statements ----------------------------------------------------------------------------------------------------------


@spelling
def keywords(tree: ast.Module) -> bool:
    found = False
    names = aliases(tree)
    for call in [n for f in device(tree) for n in ast.walk(f) if isinstance(n, ast.Call)]:
        where = call.func.value if isinstance(call.func, ast.Attribute) else None
        wanted = _KEYWORDS.get(attr(call)) if isinstance(where, ast.Name) and where.id in names else None
        if wanted is not None and len(call.args) <= len(wanted):
            pairs = zip(wanted, call.args, strict=False)
            call.keywords[:0], call.args, found = [ast.keyword(*pair) for pair in pairs], [], True
    return found


@spelling
def ranges(tree: ast.Module) -> bool:
    """``range(0, n)`` for ``T.serial(n)``."""
    found = False
    for loop in [n for f in device(tree) for n in ast.walk(f) if isinstance(n, ast.For)]:
        if isinstance(loop.iter, ast.Call) and attr(loop.iter) == "serial" and len(loop.iter.args) == 1:
            loop.iter.func, found = ast.Name("range", ast.Load()), True
            loop.iter.args.insert(0, ast.Constant(0))
    return found


@spelling
def augmented(tree: ast.Module) -> bool:
    """``x[i] = x[i] + y`` for ``x[i] += y``."""

    class Plain(ast.NodeTransformer):
        found = False

        def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
            if not isinstance(node.target, ast.Subscript):
                return node
            Plain.found = True
            old = ast.Subscript(node.target.value, node.target.slice, ast.Load())
            return ast.Assign([node.target], ast.BinOp(old, node.op, node.value))

    for function in device(tree):
        Plain().visit(function)
    return Plain.found


@spelling
def mirrored(tree: ast.Module) -> bool:
    """``0 == k`` for ``k == 0``."""
    found = False
    for node in [n for f in device(tree) for n in ast.walk(f) if isinstance(n, ast.Compare)]:
        if len(node.ops) == 1 and type(node.ops[0]) in _FLIPPED:
            node.left, node.comparators, found = node.comparators[0], [node.left], True
            node.ops = [_FLIPPED[type(node.ops[0])]()]
    return found


@spelling
def negated(tree: ast.Module) -> bool:
    """``if not c: b else: a``."""
    found = False
    for node in [n for f in device(tree) for n in ast.walk(f) if isinstance(n, ast.If) and n.orelse]:
        if not isinstance(node.orelse[0], ast.If):
            node.test, found = ast.UnaryOp(ast.Not(), node.test), True
            node.body, node.orelse = node.orelse, node.body
    return found


@spelling
def macro_of_first_calls(tree: ast.Module) -> bool:
    return into_macro(tree, lambda function: next(runs(function), None))


@spelling
def macro_of_last_calls(tree: ast.Module) -> bool:
    return into_macro(tree, lambda function: (list(runs(function)) or [None])[-1])


@spelling
def macro_of_a_loop(tree: ast.Module) -> bool:
    def first(function: ast.FunctionDef) -> Part | None:
        found = ((block, n, n + 1) for block in blocks(function) for n, s in enumerate(block) if isinstance(s, ast.For))
        return next(found, None)

    return into_macro(tree, first)


# parts of trees ------------------------------------------------------------------------------------------------------

Part = tuple[list[ast.stmt], int, int]
"""A block and the range of its statements that is meant."""


def aliases(tree: ast.Module) -> set[str]:
    """The names of ``tilelang.language``."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.asname for a in node.names if a.name == "tilelang.language" and a.asname}
        if isinstance(node, ast.ImportFrom) and node.module == "tilelang":
            found |= {a.asname or a.name for a in node.names if a.name == "language"}
    return found


def _decorated(tree: ast.AST, *words: str) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if any(word in ast.unparse(d) for d in f.decorator_list for word in words)]


def prim_funcs(tree: ast.AST) -> list[ast.FunctionDef]:
    return _decorated(tree, "prim_func")


def device(tree: ast.AST) -> list[ast.FunctionDef]:
    """Kernels and macros."""
    return _decorated(tree, "prim_func", "macro")


def _is_macro_call(tree: ast.AST, call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in {f.name for f in _decorated(tree, "macro")}


def attr(call: ast.expr) -> str:
    """``copy`` of ``T.copy(...)``."""
    return call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""


def bound(function: ast.FunctionDef) -> set[str]:
    """The names that a function binds, its parameters among them."""
    return {*stores(function), *(argument.arg for argument in function.args.args)}


def stores(node: ast.AST) -> list[str]:
    """The names that are assigned, as often as they are."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements inside of kernels."""
    for function in [tree] if isinstance(tree, ast.FunctionDef) else prim_funcs(tree):
        for node in ast.walk(function):
            for field in ("body", "orelse"):
                block = getattr(node, field, None)
                if node is not function and isinstance(block, list) and block:
                    yield block


def shaped(tree: ast.AST) -> list[ast.Call]:
    """The calls in kernels whose first argument is a shape: of tensors and of allocations."""
    calls = [n for f in prim_funcs(tree) for n in ast.walk(f) if isinstance(n, ast.Call) and n.args]
    return [call for call in calls if attr(call).startswith("alloc_") or attr(call) == "Tensor"]


def is_allocation(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and attr(statement.value).startswith("alloc_")


def within_factories(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], int, ast.FunctionDef]]:
    """Each kernel, with the block of the factory that it stands in and its place there."""
    for factory in [s for s in ast.walk(tree) if isinstance(s, ast.FunctionDef)]:
        for kernel in prim_funcs(tree):
            if kernel in factory.body:
                yield factory.body, factory.body.index(kernel), kernel


def index_arithmetic(tree: ast.Module) -> Iterator[ast.expr]:
    """Indices, and what names of the kernel are bound to."""
    for node in [n for f in device(tree) for n in ast.walk(f)]:
        if isinstance(node, ast.Subscript):
            yield node.slice
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.BinOp):
            yield node.value


def copies(function: ast.FunctionDef) -> Iterator[tuple[ast.Subscript, list[ast.expr]]]:
    """The indexed tensors of copies, each with the shape of the tile on the other side."""
    ranks = {}
    for argument in function.args.args:
        note = argument.annotation
        if isinstance(note, ast.Call) and note.args and isinstance(note.args[0], (ast.Tuple, ast.List)):
            ranks[argument.arg] = len(note.args[0].elts)
    tiles = {}
    for statement in [s for block in blocks(function) for s in block if is_allocation(s)]:
        shape = statement.value.args[0] if statement.value.args else None  # type: ignore[attr-defined]
        if isinstance(shape, (ast.Tuple, ast.List)) and isinstance(statement.targets[0], ast.Name):  # type: ignore[attr-defined]
            tiles[statement.targets[0].id] = shape.elts  # type: ignore[attr-defined]
    for call in [n for n in ast.walk(function) if isinstance(n, ast.Call) and attr(n) == "copy" and len(n.args) == 2]:
        for tensor, tile in (call.args, call.args[::-1]):
            if isinstance(tensor, ast.Subscript) and isinstance(tensor.value, ast.Name) and isinstance(tile, ast.Name):
                given = len(tensor.slice.elts) if isinstance(tensor.slice, ast.Tuple) else 1
                if tile.id in tiles and ranks.get(tensor.value.id) == given:
                    yield tensor, tiles[tile.id]


def runs(function: ast.FunctionDef) -> Iterator[Part]:
    """Two or more calls below each other."""
    for block in blocks(function):
        start = 0
        for end in range(len(block) + 1):
            if end == len(block) or not (isinstance(block[end], ast.Expr) and isinstance(block[end].value, ast.Call)):  # type: ignore[attr-defined]
                if end - start > 1:
                    yield block, start, end
                start = end + 1


def into_macro(tree: ast.Module, choose: Callable[[ast.FunctionDef], Part | None]) -> bool:
    """Move a part of each kernel into a macro beside it, which is given all that the part uses of the kernel."""
    found = False
    (name, *_) = sorted(aliases(tree)) or [""]
    for around, number, function in list(within_factories(tree)) if name else []:
        chosen = choose(function)
        if chosen is None:
            continue
        block, start, end = chosen
        part = ast.Module(block[start:end], [])
        inside = [n for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        outside = {
            n.id
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in inside
        }
        leaves = any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in ast.walk(part))
        if leaves or outside & {n.id for n in inside}:
            continue
        given = ", ".join(sorted((names_in(part) & bound(function)) - {n.id for n in inside}))
        (macro,) = ast.parse(f"@{name}.macro\ndef moved_part({given}):\n    pass").body
        assert isinstance(macro, ast.FunctionDef)
        macro.body = part.body
        block[start:end] = ast.parse(f"moved_part({given})").body
        around.insert(number, macro)
        found = True
    return found
