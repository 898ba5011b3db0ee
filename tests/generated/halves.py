"""Prints a program of whole tiles as a kernel whose vector cores have half of the rows each."""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Sequence

from tests.generated import program as p
from tests.generated.legacy import HALF
from tests.generated.printing import Text

_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "max": "max", "min": "min", "/": "div"}
_FUNCTIONS = {"exp": "exp", "abs": "abs", "sqrt": "sqrt", "rsqrt": "rsqrt", "log": "ln"}
_KEYS = ("TL_ASCEND_AUTO_SYNC", "TL_ASCEND_AUTO_CV_COMBINE", "TL_ASCEND_MEMORY_PLANNING", "TL_ASCEND_AUTO_CV_SYNC")
_ALLOC = {"ub": "ub", "whole": "ub", "l1": "L1", "l0c": "L0C"}


class Halves(Text):
    """Expert mode with scopes and flags, or one text for both kinds of cores."""

    def __init__(self, program: p.Program) -> None:
        super().__init__(program, "T", program.spelled("literal", ()))
        self.rows: set[str] = set()
        self.launch = program.launches[0]
        self.tiles = {t.name: t for t in self.launch.tiles}
        self.tensors = {t.name: t for t in program.tensors}
        self.cid, self.vid = program.spelled("names", ("cid", "vid"))
        self.core = f"(1 - {self.vid})" if program.spelled("swapped") else self.vid
        whole = self.expr(p.Name("BM"))
        self.half = {"half": "half", "VEC_NUM": f"{whole} // VEC_NUM"}.get(program.spelled("half"), f"{whole} // 2")
        self.offset = (
            f"{self.core} * ({self.half})" if program.spelled("half") == "VEC_NUM" else f"{self.core} * {self.half}"
        )
        self.macros: list[str] = []
        self.pressed: list[tuple[str, str]] = []
        self.count = ""
        self.loops: list[str] = []
        self.side = "CV"
        pairs = [(s.source.buffer, s.target.buffer) for s in p.nodes(self.launch.body) if isinstance(s, p.Copy)]
        self.transfers = [
            pair
            for pair in dict.fromkeys(pairs)
            if all(n in self.tiles for n in pair) and len({self._core(n) for n in pair}) > 1
        ]

    def _core(self, name: str) -> str:
        return "C" if self.tiles[name].kind in ("l1", "l0c") else "V"

    @property
    def expert(self) -> bool:
        return bool(self.program.spelled("expert"))

    def text(self) -> str:
        """The file."""
        tensors = self.program.tensors
        outs = [n for n, t in enumerate(tensors) if t.kind == "out"]
        keys = () if self.expert else _KEYS if self.transfers else _KEYS[: self.program.spelled("keys", 4)]
        jit = [f"out_idx={outs}"]
        jit += [f"workspace_idx={[len(tensors) + n for n in range(len(self.transfers))]}"] if self.transfers else []
        jit += ["pass_configs=pass_configs"] if keys else []
        lines = ["import tilelang", "import tilelang.language as T", ""]
        lines += (
            ["pass_configs = {", *(f"    tilelang.PassConfigKey.{key}: True," for key in keys), "}", ""] if keys else []
        )
        arguments = [f"{n}={v}" for n, v in self.program.sizes if n not in self.literal]
        lines += ["", f"@tilelang.jit({', '.join(jit)})", f"def kern({', '.join(arguments)}):"]
        whole = self.expr(p.Name("BM"))
        lines += [f"    half = {whole} // 2"] if self.program.spelled("half") == "half" else []
        lines += ["    VEC_NUM = 2"] if self.program.spelled("half") == "VEC_NUM" else []
        counts = [
            f"T.ceildiv({self.plain(e.left)}, {self.plain(e.right)})"
            for _, e in self.launch.blocks
            if isinstance(e, p.Bin)
        ]
        if len(counts) > 1:
            lines.append(f"    n_num = {counts[1]}")
            counts[1] = "n_num"
        self.count = " * ".join(counts)
        body = textwrap.indent("\n".join(self._body()), " " * 12)
        lines += [line for macro in self.macros for line in ["", *textwrap.indent(macro, " " * 4).split("\n")]]
        lines += ["", "    @T.prim_func", "    def main("]
        lines += [f"        {t.name}: T.Tensor({self.shape(t.shape)}, {t.dtype!r})," for t in tensors]
        lines += [f"        {line}," for line in map(self._workspace, range(len(self.transfers)))]
        head = f"        with T.Kernel({self.count}, is_npu=True) as ({self.cid}, {self.vid}):"
        return "\n".join([*lines, "    ):", head, body, "", "    return main", ""])

    def _workspace(self, number: int) -> str:
        source, target = (self.tiles[name] for name in self.transfers[number])
        narrow = target.dtype if source.kind == "l0c" else source.dtype
        versions = "2, " if self._versions(number) else ""
        shape = ", ".join(map(self.plain, source.shape))
        return f"workspace_{number + 1}: T.Tensor(({self.count}, {versions}{shape}), {narrow!r})"

    def _versions(self, number: int) -> bool:
        """Two slots in turn, for a transfer within a loop."""
        pair = self.transfers[number]
        loops = [s for s in self.launch.body if isinstance(s, p.For)]
        inside = any(
            isinstance(s, p.Copy) and (s.source.buffer, s.target.buffer) == pair for loop in loops for s in loop.body
        )
        return inside and bool(self.program.spelled("parity"))

    def _body(self) -> list[str]:
        lines = []
        if len(self.launch.blocks) > 1:
            lines += [f"bx = {self.cid} // n_num", f"by = {self.cid} % n_num"]
        else:
            lines.append(f"bx = {self.cid}")
        for tile in self.launch.tiles:
            shape = list(map(self.plain, tile.shape))
            if tile.kind == "ub":
                shape[0] = self.half
                shape += ["1"] if len(shape) == 1 and self.program.spelled("column") else []
            extents = ", ".join(shape) + ("," if len(shape) == 1 else "")
            lines.append(f"{tile.name} = T.alloc_{_ALLOC[tile.kind]}(({extents}), {tile.dtype!r})")
        if not self.expert:
            return lines + self.block(self.launch.body)
        for side in "CV":
            self.side = side
            inner = self.block(self.launch.body)
            if inner:
                lines += [f"with T.Scope({side!r}):", *("    " + line for line in inner)]
        return lines

    # statements

    def block(self, body: Sequence[p.Stmt]) -> list[str]:
        """The statements of the side that is printed."""
        lines = []
        for s in body:
            new = self.statement(s)
            lines += new
            if new and self.expert and not isinstance(s, (p.For, p.If)):
                lines.append("T.barrier_all()")
        return lines

    def statement(self, s: p.Stmt) -> list[str]:
        """One statement."""
        if isinstance(s, (p.For, p.If)):
            return self._nested(s)
        if isinstance(s, p.Macro):
            return self._macro(s) if "V" in self.side else []
        if isinstance(s, p.Copy):
            return self._copy(s)
        if isinstance(s, p.Gemm):
            return self._gemm(s) if "C" in self.side else []
        if isinstance(s, p.Fill) and self._core(s.target.buffer) == "C":
            return []  # the first product begins with zeros
        if "V" not in self.side:
            return []
        if isinstance(s, p.Fill):
            return [f"T.tile.fill({s.target.buffer}, {float(s.value)})"]
        if isinstance(s, p.Reduce):
            return [f"T.reduce_{s.kind}({s.source}, {s.target}, dim={s.axis})"]
        assert isinstance(s, p.Parallel), s
        return self._parallel(s)

    def _nested(self, s: p.For | p.If) -> list[str]:
        if isinstance(s, p.If):
            inner = self.block(s.then)
            return [f"if {self.plain(s.condition)}:", *("    " + line for line in inner)] if inner else []
        self.loops.append(s.var)
        before, self.pressed = self.pressed, self._one_way(s)
        inner = self.block(s.body)
        last = [line for pair in self.pressed for line in self._pressure(pair, "wait")]
        self.pressed = before
        self.loops.pop()
        extent = self.plain(s.extent)
        head = f"for {s.var} in {'range' if self.program.spelled('loop') == 'range' else 'T.serial'}({extent}):"
        return [head, *("    " + line for line in inner), *last] if inner else []

    def _one_way(self, s: p.For) -> list[tuple[str, str]]:
        """The transfers of an Expert loop whose writer must be told when the reader is done: nothing comes back."""
        pairs = [(n.source.buffer, n.target.buffer) for n in s.body if isinstance(n, p.Copy)]
        inside = [pair for pair in pairs if pair in self.transfers]
        one_way = len({self._core(target) for _, target in inside}) == 1
        return inside if self.expert and one_way else []

    def _pressure(self, pair: tuple[str, str], what: str) -> list[str]:
        """The flag against the direction of a transfer, on the side where it is set or waited for."""
        side = self._core(pair[0 if what == "wait" else 1])
        if pair not in self.pressed or side not in self.side:
            return []
        flag = self.transfers.index(pair) + 4
        return [f"T.wait_cross_flag({flag})"] if what == "wait" else [f'T.set_cross_flag("MTE2", {flag})']

    def _macro(self, s: p.Macro) -> list[str]:
        """The call of vector statements; the macro goes in front of the kernel."""
        names = sorted((p.names(s.body) - p.bound(s.body) - {name for name, _ in self.program.sizes}) | {self.vid})
        self.macros.append(
            "\n".join(
                ["@T.macro", f"def {s.name}({', '.join(names)}):", *("    " + line for line in self.block(s.body))]
            )
        )
        return [f"{s.name}({', '.join(names)})"]

    def _gemm(self, s: p.Gemm) -> list[str]:
        flags = [f"{name}=True" for name, on in (("transpose_A", s.transpose_a), ("transpose_B", s.transpose_b)) if on]
        text = f"T.gemm_v0({', '.join([s.a, s.b, s.c, *flags])}"
        if s.clear:
            return [f"{text}, init=True)"]
        var = self.loops[-1]
        if self.program.spelled("branch_init"):
            return [f"if {var} == 0:", f"    {text}, init=True)", "else:", f"    {text})"]
        return [f"{text}, init=({var} == 0))"]

    def _copy(self, s: p.Copy) -> list[str]:
        pair = (s.source.buffer, s.target.buffer)
        if pair in self.transfers:
            return self._transfer(*pair)
        core = self._core(next(name for name in pair if name in self.tiles))
        if core not in self.side:
            return []
        return [f"T.copy({self._region(s.source, s.target)}, {self._region(s.target, s.source)})"]

    def _region(self, r: p.Region, other: p.Region) -> str:
        if r.buffer in self.tiles:
            return r.buffer
        tile = self.tiles[other.buffer]
        starts, lengths = list(map(self.plain, r.starts)), list(map(self.plain, tile.shape))
        if tile.kind == "ub":
            starts[0], lengths[0] = f"{starts[0]} + {self.offset}", self.half
            if self.program.spelled("tasks") and r.starts[0] == p.Bin("*", p.Name("bx"), p.Name("BM")):
                starts[0] = f"(bx * 2 + {self.core}) * ({self.half})"
        if self.program.spelled("slices"):
            return f"{r.buffer}[{', '.join(f'{a} : {a} + {b}' for a, b in zip(starts, lengths, strict=True))}]"
        return f"{r.buffer}[{', '.join(starts)}]"

    def _transfer(self, source: str, target: str) -> list[str]:
        number = self.transfers.index((source, target))
        slot = f"{self.loops[-1]} % 2, " if self._versions(number) else ""
        name = f"workspace_{number + 1}"
        whole = f"{name}[{self.cid}, {slot}0, 0]"
        half = f"{name}[{self.cid}, {slot}{self.offset}, 0]"
        to_vector = self._core(target) == "V"
        write = f"T.copy({source}, {whole if to_vector else half})"
        read = f"T.copy({half if to_vector else whole}, {target})"
        writer, reader = ("C", "V") if to_vector else ("V", "C")
        pair = (source, target)
        lines = []
        if writer in self.side:
            free = self._pressure(pair, "wait")
            lines += [f"if {self.loops[-1]} > 0:", *("    " + line for line in free)] if free else []
            lines.append(write)
            lines += (
                ["T.barrier_all()", f"T.set_cross_flag({'FIX' if to_vector else 'MTE3'!r}, {number})"]
                if self.expert
                else []
            )
        if reader in self.side:
            lines += [f"T.wait_cross_flag({number})", "T.barrier_all()"] if self.expert else []
            lines.append(read)
            done = self._pressure(pair, "set")
            lines += ["T.barrier_all()", *done] if done else []
        return lines

    # elements

    def _parallel(self, s: p.Parallel) -> list[str]:
        inner = s.body[0]
        written = {n.target.buffer for n in p.nodes(s.body) if isinstance(n, p.Assign)}
        halved = any(self.tiles[name].kind == "ub" for name in written)
        random = zlib.crc32(repr(s).encode()) % 1000 / 1000
        needed = isinstance(inner, p.Assign) and isinstance(inner.value, p.Bin) and inner.value.op in ("max", "min")
        if isinstance(inner, p.Assign) and (needed or random < self.program.spelled("ops", 0.5)):
            operator = self._operator(inner, s.vars)
            if operator:
                return operator
        extents = list(map(self.plain, s.extents))
        if halved:
            extents[0] = self.half
            self.rows = {s.vars[0]}
        body = s.body
        first = isinstance(inner, p.If) and inner.condition == p.Bin("<", p.Name(s.vars[0]), HALF)
        if first:  # the rows of one core
            body = inner.then
        lines = [f"for {', '.join(s.vars)} in T.Parallel({', '.join(extents)}):"]
        lines += ["    " + line for line in self._elements(body)]
        if first:
            lines = [
                f"if {self.core} == 0:".replace("(1 - ", "1 - ").replace(") ==", " =="),
                *("    " + line for line in lines),
            ]
        self.rows = set()
        return lines

    def _elements(self, body: Sequence[p.Stmt]) -> list[str]:
        lines = []
        for s in body:
            if isinstance(s, p.If):
                lines += [f"if {self.plain(s.condition)}:", *("    " + line for line in self._elements(s.then))]
            else:
                assert isinstance(s, p.Assign)
                lines.append(f"{self.expr(s.target)} {s.op}= {self.plain(s.value)}")
        return lines

    def _operator(self, s: p.Assign, vars_: Sequence[str]) -> list[str]:
        """``T.tile...`` for a statement on whole tiles of one shape; nothing where there is none."""
        shape = self.tiles[s.target.buffer].shape
        value = s.value

        def tile(e: p.Expr) -> str:
            same = isinstance(e, p.Ref) and self.tiles[e.buffer].shape == shape
            return e.buffer if isinstance(e, p.Ref) and same else ""

        if s.op:
            return []
        if isinstance(value, p.Un) and tile(value.operand) and value.op in _FUNCTIONS:
            return [f"T.tile.{_FUNCTIONS[value.op]}({s.target.buffer}, {tile(value.operand)})"]
        if isinstance(value, p.Bin) and tile(value.left) and value.op in _OPERATORS:
            right = self.expr(value.right) if isinstance(value.right, p.Const) else tile(value.right)
            if right and (value.op != "-" or not isinstance(value.right, p.Const)):
                return [f"T.tile.{_OPERATORS[value.op]}({s.target.buffer}, {tile(value.left)}, {right.strip('()')})"]
            row = isinstance(value.right, p.Ref) and self.tiles[value.right.buffer].kind == "ub" and len(vars_) == 2
            if (
                row
                and not right
                and len(self.tiles[value.right.buffer].shape) == 1
                and value.op in "*+"
                and not self.program.spelled("column")
            ):  # type: ignore[union-attr]
                one = value.right.buffer  # type: ignore[union-attr]
                head = f"for i in range({self.half}):"
                return [
                    head,
                    f"    T.tile.{_OPERATORS[value.op]}({s.target.buffer}[i, :], {tile(value.left)}[i, :], {one}[i])",
                ]
        return []

    def expr(self, e: p.Expr) -> str:
        """A row is counted within the half where it is an index, within the tile where it is a number."""
        if isinstance(e, p.Name) and e.name in self.rows:
            return f"({self.offset} + {e.name})"
        if isinstance(e, p.Bin) and isinstance(e.left, p.Name) and e.left.name in self.rows and e.right == HALF:
            return e.left.name if e.op == "%" else self.core
        if isinstance(e, p.Ref) and e.buffer in self.tiles and self.tiles[e.buffer].kind == "ub":
            first, *rest = e.index
            assert isinstance(first, p.Name), e
            index = [first.name, *map(self.plain, rest)]
            index += ["0"] if len(index) == 1 and self.program.spelled("column") else []
            return f"{e.buffer}[{', '.join(index)}]"
        return super().expr(e)
