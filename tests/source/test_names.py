from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest

from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import walk


def names_of(text: str) -> tuple[Index, Names]:
    index = Index.parse(dedent(text))
    return index, Names(index)


def called(text: str) -> dict[str, str | None]:
    """What every called function of the text means."""
    index, names = names_of(text)
    return {
        index.module.code_for_node(node.func): names.resolve(node.func)
        for node in walk(index.module)
        if isinstance(node, cst.Call)
    }


@pytest.mark.parametrize(
    ("imports", "use", "meaning"),
    [
        ("import tilelang.language as T", "T.tile.add", "tilelang.language.tile.add"),
        ("from tilelang import language as TL", "TL.copy", "tilelang.language.copy"),
        ("from tilelang import DataType, language", "language.copy", "tilelang.language.copy"),
        ("import tilelang", "tilelang.language.copy", "tilelang.language.copy"),
        ("import tilelang.language", "tilelang.jit", "tilelang.jit"),
        ("import tilelang as tl", "tl.PassConfigKey.X", "tilelang.PassConfigKey.X"),
        ("from tilelang.language import copy, Kernel as K", "K", "tilelang.language.Kernel"),
        ("from tilelang.language import copy, Kernel as K", "copy", "tilelang.language.copy"),
        ("from tilelang import jit", "jit", "tilelang.jit"),
        ("from tilelang.jit import jit", "jit", "tilelang.jit"),
        ("from tilelang.transform import PassConfigKey as P", "P.X", "tilelang.PassConfigKey.X"),
        ("import tilelang\nL = tilelang.language", "L.copy", "tilelang.language.copy"),
        ("import tilelang.language as T\ncopy = T.copy", "copy", "tilelang.language.copy"),
        ("from tilelang.language import *", "alloc_ub", "tilelang.language.alloc_ub"),
        ("from tilelang.language import *", "print", "tilelang.language.print"),
        ("from tilelang.language import *", "range", None),
        ("from tilelang.autotuner import *", "min", None),
        ("from tilelang.language import *\nfrom tilelang.jit import *", "min", "tilelang.language.min"),
        ("from mine import *", "min", "mine.min"),
        ("from tilelang.language import *\nalloc_ub = mine()", "alloc_ub", None),
        ("from .ops import fast", "fast", ".ops.fast"),
        ("from . import ops", "ops.fast", ".ops.fast"),
        ("import tilelang", "range", None),
        ("import tilelang", "T.copy", None),
        ("try:\n    import a.b as T\nexcept ImportError:\n    T = None", "T.copy", "a.b.copy"),
        ("try:\n    import a as T\nexcept ImportError:\n    import b as T", "T.copy", "a.copy"),
        ("if x:\n    import a as T\nelse:\n    import b as T", "T.copy", None),
        ("import tilelang.language as T\nT = wrap(T)", "T.copy", None),
        ("import tilelang.language as T\nT += 1", "T.copy", None),
        ("a = b\nb = a", "a", None),
        ("import tilelang.language as T\nfor T in x: pass", "T.copy", None),
        ("import tilelang.language as T\nwith x as (y, T): pass", "T.copy", None),
        ("import tilelang.language as T\ndef T(): pass", "T.copy", None),
        ("import tilelang.language as T\nmatch x:\n    case [T]: pass", "T.copy", None),
        ("import tilelang.language as T\ntry: pass\nexcept E as T: pass", "T.copy", None),
    ],
)
def test_resolve(imports: str, use: str, meaning: str | None) -> None:
    assert called(f"{imports}\n{use}()\n")[use] == meaning


def test_scopes() -> None:
    found = called(
        """
        import tilelang.language as T

        def outer(param=T.default(1)):
            import tilelang as tl
            copy = T.copy
            def inner(x: T.Tensor(2)):
                copy(1)
                tl.jit()
            return inner

        def shadowed(T):
            T.shadowed()

        def local():
            T = 3
            T.local()

        class C:
            copy = T.copy
            in_class = copy()
            def method(self):
                copy.nothing()

        f = lambda T: T.in_lambda()
        [T.in_list() for x in y for T in z]
        [T.free_in_list() for x in y]
        tl.unseen()
        """
    )
    assert found == {
        "T.default": "tilelang.language.default",
        "T.Tensor": "tilelang.language.Tensor",
        "copy": "tilelang.language.copy",
        "tl.jit": "tilelang.jit",
        "T.shadowed": None,
        "T.local": None,
        "copy.nothing": None,
        "T.in_lambda": None,
        "T.in_list": None,
        "T.free_in_list": "tilelang.language.free_in_list",
        "tl.unseen": None,
    }


def test_decorators_are_outside_of_the_function() -> None:
    index, names = names_of("import tilelang.language as T\n@T.prim_func\ndef f(T): pass\n")
    function = index.statements[1]
    assert isinstance(function, cst.FunctionDef)
    assert names.resolve(function.decorators[0].decorator) == "tilelang.language.prim_func"


def test_only_dotted_names_resolve_and_foreign_nodes_do() -> None:
    _, names = names_of("import tilelang.language as T\n")
    assert names.resolve(cst.parse_expression("T.f")) == "tilelang.language.f"
    for text in ("T.f()", "T[0].x", "1", "'T'"):
        assert names.resolve(cst.parse_expression(text)) is None


@pytest.mark.parametrize(
    ("imports", "canonical", "text"),
    [
        ("import tilelang.language as T", "tilelang.language.alloc_shared", "T.alloc_shared"),
        ("import tilelang\nimport tilelang.language as T", "tilelang.language.alloc_shared", "T.alloc_shared"),
        ("from tilelang import language as TL", "tilelang.language.tile.add", "TL.tile.add"),
        ("import tilelang", "tilelang.language.copy", "tilelang.language.copy"),
        ("import tilelang as tl", "tilelang.PassConfigKey.X", "tl.PassConfigKey.X"),
        ("from tilelang.transform import PassConfigKey", "tilelang.PassConfigKey.X", "PassConfigKey.X"),
        ("from tilelang.language import copy as c", "tilelang.language.copy", "c"),
        ("from tilelang.language import copy", "tilelang.language.alloc_shared", None),
        ("from tilelang.language import *", "tilelang.language.alloc_shared", "alloc_shared"),
        ("from tilelang.language import *\nalloc_shared = 1", "tilelang.language.alloc_shared", None),
        ("import tilelang\nfrom tilelang.language import *", "tilelang.language.tile.add", "tile.add"),
        ("import tilelang.language as T\nT = wrap(T)", "tilelang.language.copy", None),
        ("import tilelang.languages as T", "tilelang.language.copy", None),
        ("import tilelang.lang as T", "tilelang.language.copy", None),
        ("", "tilelang.language.copy", None),
    ],
)
def test_spell(imports: str, canonical: str, text: str | None) -> None:
    _, names = names_of(imports + "\n")
    assert names.spell(canonical) == text


def test_spell_where_names_are_shadowed_or_local() -> None:
    index, names = names_of(
        """
        import tilelang
        import tilelang.language as T
        def f(T):
            T
        def g():
            from tilelang.language import copy
            copy
        """
    )
    bare = {index.module.code_for_node(s): s for s in index.statements if isinstance(s, cst.Expr)}
    in_f, in_g = bare["T"], bare["copy"]
    assert names.spell("tilelang.language.copy", at=in_f) == "tilelang.language.copy"
    assert names.spell("tilelang.language.copy", at=in_g) == "copy"
    assert names.spell("tilelang.language.copy") == "T.copy"


@pytest.mark.parametrize(
    ("imports", "text"),
    [
        ('if __name__ == "__main__":\n    import torch', None),
        ("if TYPE_CHECKING:\n    import torch", None),
        ("if fast:\n    pass\nelif slow:\n    import torch\nelse:\n    import torch", None),
        ("if fast:\n    if slow:\n        import torch\nelse:\n    import torch", None),
        ("if fast:\n    import torch\nelif slow:\n    import torch\nelse:\n    import torch", "torch"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch"),
        ("with suppress(ImportError):\n    import torch", "torch"),
        ("import torch as th\nif __name__ == '__main__':\n    import torch", "th"),
    ],
)
def test_spell_what_is_imported_under_a_condition(imports: str, text: str | None) -> None:
    """Whoever imports the module does not run all branches; a function that names it already takes the risk itself."""
    index, names = names_of(imports + "\ndef f():\n    pass\ndef g():\n    torch.empty(1)\n")
    f, g = (node for node in index.statements if isinstance(node, cst.FunctionDef))
    assert names.spell("torch", at=f.body) == names.spell("torch") == text
    assert names.spell("torch", at=g.body) == (text or "torch")
    (inside,) = (node for node in index.module.body[-3:-2])
    assert names.spell("torch", at=inside) in ("torch", "th")


def test_variables_that_get_the_values_of_each_other() -> None:
    """The ways through such assignments are more than anyone can count; what one of the names means is not known."""
    names = [f"v{number}" for number in range(14)]
    text = "import tilelang.language as T\ndef f(c, g):\n" + "".join(f"    {name} = g()\n" for name in names)
    for turn in range(8):
        text += f"    if c == {turn}:\n"
        text += "".join(f"        {name} = {names[(j * (turn + 3) + turn) % 14]}\n" for j, name in enumerate(names))
    assert called(f"{text}    v0(1)\n    T.exp(2)\n") == {"g": None, "v0": None, "T.exp": "tilelang.language.exp"}


FORWARDING = """
try:
    import tilelang
    import tilelang.language as T
except ImportError:
    tilelang = None


def whole(*args, **kwargs):
    return tilelang.jit(*args, **kwargs)


def guarded(func=None, **options):
    '''Compile, where it can.'''
    if tilelang is None:
        return func
    return tilelang.jit(func, **options)


def copied(src, dst):
    return T.copy(src, dst)


def by_name(func=None, *, out_idx=None):
    return tilelang.jit(func, out_idx=out_idx)


def turned(src, dst):
    return T.copy(dst, src)


def some(*args, **kwargs):
    return tilelang.jit(*args)


def more(*args, **kwargs):
    print(args)
    kwargs["verbose"] = True
    return tilelang.jit(*args, **kwargs)


def either(*args, **kwargs):
    if FAST:
        return T.copy(*args, **kwargs)
    return T.fill(*args, **kwargs)


def sometimes(*args, **kwargs):
    if FAST:
        return T.copy(*args, **kwargs)
    return None


def other(*args, **kwargs):
    return functools.partial(*args, **kwargs)


whole(), guarded(), copied(), by_name(), turned(), some(), more(), either(), sometimes(), other()
"""


def test_a_function_that_hands_on_all_that_it_is_given() -> None:
    found = called(FORWARDING)
    assert {name for name in found if found[name] == "tilelang.jit" and name != "tilelang.jit"} == {
        "whole",
        "guarded",
        "by_name",
    }
    assert found["copied"] == "tilelang.language.copy"
    for name in ("turned", "some", "more", "either", "sometimes", "other"):
        assert found[name] is None, name
