"""Executes the file that kernels are in: as a script, or as a module of which factories are asked for."""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tl2npu.simulator.frontend.types import NAMES
from tl2npu.simulator.pieces import Piece, run_pieces
from tl2npu.simulator.standin.inert import Inert
from tl2npu.simulator.standin.torch_redirect import Accelerator
from tl2npu.source.benchmark import model_of
from tl2npu.source.notebook import Notebook


def run_model(text: str, namespace: dict[str, Any]) -> None:
    """Run the model of a file that was executed as a script, if it is a benchmark that runs nothing. The seed is 0."""
    name = model_of(ast.parse(text)) if "get_inputs" in namespace else None
    if name is None:
        return
    import torch

    torch.manual_seed(0)
    first = namespace["get_init_inputs"]() if "get_init_inputs" in namespace else []
    model = namespace[name](**first) if isinstance(first, dict) else namespace[name](*first)
    model = model.cuda() if isinstance(model, torch.nn.Module) else model
    inputs = [item.cuda() if isinstance(item, torch.Tensor) else item for item in namespace["get_inputs"]()]
    with torch.no_grad():
        model(*inputs)


@dataclass(frozen=True)
class Source:
    """A file to execute. ``text`` may differ from what ``path`` holds; ``shown`` is what messages call it.

    ``book``: the notebook whose code the text is; its cells are executed one by one. ``others``: paths of modules that
    it imports, with the texts that these have for it.
    """

    text: str
    path: str
    shown: str
    book: Notebook | None = None
    others: tuple[tuple[str, str], ...] = ()

    @property
    def pieces(self) -> list[Piece]:
        """What is executed, in order."""
        return [(self.shown, self.text)] if self.book is None else cells_of(self.book, self.shown)

    def line(self, file: str, line: int) -> int:
        """The line of the text for a line of a piece, 0 where it is of none of the cells; 1 for one of another file."""
        if self.book is None:
            own = not file or file == self.shown or Path(file).resolve() == Path(self.path).resolve()
            return line if own or not line else 1
        starts = {name: cell.start for (name, _), cell in zip(self.pieces, self.book.python, strict=True)}
        return starts[file] + line - 1 if file in starts and line else 0


def cells_of(book: Notebook, shown: str) -> list[Piece]:
    """The cells of a notebook as they are executed, without what is IPython's."""
    return [(f"{shown}:cell {cell.number}", cell.masked.text) for cell in book.python]


def execute(source: Source, name: str, argv: Sequence[str]) -> ModuleType:
    """Execute the text as the module ``name`` and give it back; ``argv`` are the arguments behind the script's name.

    The directory of ``path`` is the first on ``sys.path``, as Python has it for scripts, and stays there: functions of
    the file may import later. The model of a benchmark is run, where a script defines one and runs nothing. Exceptions
    of the file, SystemExit too, pass through.
    """
    module = ModuleType(name)
    module.__file__ = source.path
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    sys.argv = [source.path, *argv]
    sys.dont_write_bytecode = True  # the folder of the file is the user's
    directory = str(Path(source.path).resolve().parent)
    if sys.path[:1] != [directory]:
        sys.path.insert(0, directory)
    if name != "__main__":
        module.__package__ = _package(Path(source.path).resolve())
    if source.others:
        sys.meta_path.insert(0, _Rewritten(dict(source.others)))
    run_pieces(source.pieces, module.__dict__)
    if name == "__main__":
        run_model(source.text, module.__dict__)
    return module


class _Rewritten(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, those of ``texts`` with these texts, by path; it stays, as functions may import."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        origin = str(Path(spec.origin).resolve()) if spec is not None and spec.origin else ""
        if spec is None or origin not in self.texts:
            return None
        spec.loader = _Text(name, origin, self.texts[origin])
        return spec


class _Text(importlib.machinery.SourceFileLoader):
    """Loads a module from a text; nothing compiled is read or written."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str) -> Any:
        return compile(self.text, f"{self.path} (migrated)", "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        return self.text


def _package(path: Path) -> str:
    """The package that a file is part of, so that it can import from its neighbours; its root is on ``sys.path``."""
    names: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if names and str(folder) not in sys.path:
        sys.path.append(str(folder))
    return ".".join(names)


@contextmanager
def anything_importable() -> Iterator[set[str]]:
    """Inside of the context a file of which only the kernels are wanted may import packages that are not installed.

    Gives the outermost names of those that the user's own files asked for. Empty ones stand in: their names may be
    mentioned, called and derived from, but give no values. Modules below an installed package are not invented, and
    installed packages do not get what they miss: they do without it.
    """
    without_torch = importlib.util.find_spec("torch") is None
    first, last = _Finder({"torch", "torch_npu"} if without_torch else set()), _Finder()
    sys.meta_path.insert(0, first)
    sys.meta_path.append(last)
    try:
        yield last.asked
    finally:
        sys.meta_path.remove(first)
        sys.meta_path.remove(last)
        for name in [n for n, module in sys.modules.items() if type(module) is _Absent]:
            del sys.modules[name]


class _Nothing(Inert):
    """A name of a package that is not there: no value, so that nothing can be computed from it by mistake."""

    def __repr__(self) -> str:
        return f"<{self.__name__}: {self.__name__.split('.')[0]} is not installed>"


class _Absent(ModuleType):
    """A package or a module below it. Element types (torch's) are their names, which TileLang takes as well."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__file__ = f"<{name}: not installed>"
        self.__version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if f"{self.__name__}.{name}" in ("torch.npu", "torch_npu.npu"):
            return Accelerator("torch.npu")  # how many cores there are does not need torch
        return name if name in NAMES else _Nothing(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages of ``roots`` and everything below them; without ``roots`` what no finder before it has found.

    ``asked``: the outermost packages that it has found.
    """

    def __init__(self, roots: set[str] | None = None) -> None:
        self.roots = roots
        self.asked: set[str] = set()

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        root = name.split(".")[0]
        if _is_installed(_importer()):
            return None
        if (self.roots is None and (name == root or root in self.asked)) or root in (self.roots or ()):
            self.asked.add(root)
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return _Absent(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""


_INSTALLED = tuple(
    str(Path(folder).resolve())
    for folder in (
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        site.getusersitepackages(),
        str(Path(__file__).parents[1]),
    )
)
"""Where code lies that is not the user's: Python's, that of installed packages, this package's."""


def _importer() -> str:
    """The file whose import is being looked for: the innermost frame that is not Python's import system."""
    frame = sys._getframe(2)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_globals.get("__name__") == "importlib"
    ):
        frame = frame.f_back
    return frame.f_code.co_filename


def _is_installed(file: str) -> bool:
    path = Path(file).resolve()
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts) or str(path).startswith(_INSTALLED)
