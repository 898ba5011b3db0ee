"""Stand-alone: compiles the kernels of a file with the installed TileLang-Ascend; nothing is launched.

The file is run as a script, or its factories are called; each kernel that ``tilelang.jit`` or ``tilelang.compile`` gets
is lowered in a forked process, since the compiler may die. The request: ``pieces`` (file, text), ``path`` of the
original, ``calls`` (factory, arguments as text) or ``script_args``, ``target`` and ``platform`` (null: what the kernel
says), ``bisheng`` (compile what was generated), ``folder`` for what is written. Events: ``program`` for each kernel
with the verdict, ``stopped`` for code around kernels that stopped, ``note``.
"""

from __future__ import annotations

import ast
import faulthandler
import functools
import importlib
import importlib.util
import inspect
import itertools
import json
import linecache
import os
import re
import signal
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

Emit = Callable[[dict[str, Any]], None]

_FAULT = re.compile(r'File "([^"]+)", line (\d+)')
_PASS = re.compile(r"transform\.(\w+)\(")
_SOURCE = re.compile(r'File "[^"]*/((?:src/)?(?:transform|op|target|layout|tl_templates)/\S+)", line (\d+)')
_SAID = re.compile(r"Check failed|InternalError:|TVMError:|\w+Error: ")
_PREFIX = re.compile(r"^(tvm\.\S+: |\[\d\d:\d\d:\d\d\] \S+: )+")
_DEVICES = {"A2": "Ascend910B2", "A3": "Ascend910_9392", "A5": "Ascend950PR_9599"}
_STOPPED = (KeyboardInterrupt, SystemExit)


class Compiler:
    """The installed compiler, with what it is asked recorded."""

    def __init__(self, request: dict[str, Any], emit: Emit) -> None:
        self.request, self.emit = request, emit
        self.folder = Path(request["folder"])
        self.files = {str(file) for file, _ in request["pieces"]}
        self.factory: tuple[str, str] | None = None
        self.parsing: tuple[str, int] | None = None
        self.error: tuple[str, str, int] | None = None
        self.numbers = itertools.count()
        self.notes: set[str] = set()

    def note(self, text: str) -> None:
        """Tell something once."""
        if text not in self.notes:
            self.notes.add(text)
            self.emit({"event": "note", "text": text})

    def told(self, kernel: str, line: int, status: str, **more: Any) -> None:
        """Tell the verdict on one kernel."""
        factory, call = self.factory or ("", "")
        self.emit(
            {
                "event": "program",
                "kernel": kernel,
                "line": line,
                "factory": factory,
                "call": call,
                "status": status,
                **more,
            }
        )

    def place(self, error: BaseException) -> tuple[str, int] | None:
        """The innermost line of the file that an exception went through."""
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in self.files]
        return (frames[-1].filename, frames[-1].lineno or 0) if frames else None

    # -- the front end

    def parse(self, original: Callable[..., Any], func: Any, *args: Any, **kwargs: Any) -> Any:
        """``parse`` of the front end: what it rejects is told on the line that it names."""
        kernel = getattr(func, "__qualname__", "").replace(".<locals>", "")
        line = func.__code__.co_firstlineno if hasattr(func, "__code__") else 0
        self.error = None
        try:
            program = original(func, *args, **kwargs)
        except _STOPPED:
            raise
        except BaseException as error:
            message, file, at = self.error or (one_line(error), *(self.place(error) or ("", 0)))
            self.told(kernel, line, "rejected", phase="front end", message=message, file=file, at=at)
            error._told = True  # type: ignore[attr-defined]
            raise
        program._place = (kernel, line)
        return program

    def report_error(self, original: Callable[..., Any], parser: Any, node: Any, error: Any) -> Any:
        """The parser's own report: the innermost one has the line, those around repeat it."""
        if self.error is None:
            source = parser.diag.source
            line = getattr(node, "lineno", None)
            at = source.start_line + line - 1 if line is not None else source.start_line
            self.error = (one_line(error), str(source.source_name), at)
        return original(parser, node, error)

    def jitted(self, original: Callable[..., Any], implementation: Any, func: Any) -> Any:
        """``tilelang.jit``: remembers which factory is called, and how."""
        name = getattr(func, "__qualname__", "").replace(".<locals>", "")

        @functools.wraps(func)
        def traced(*args: Any, **kwargs: Any) -> Any:
            shown = [repr(value)[:200] for value in args] + [f"{key}={value!r}"[:200] for key, value in kwargs.items()]
            self.factory = (name, f"{name}({', '.join(shown)})")
            return func(*args, **kwargs)

        return original(implementation, traced)

    # -- the passes and the code generator

    def compile(self, kernel: Any, func: Any, out_idx: Any, workspace_idx: Any) -> Any:
        """In place of ``JITKernel._compile_and_create_adapter``."""
        name, line = getattr(func, "_place", None) or (str(func.attrs["global_symbol"]), 0)
        target = self.request["target"] or str(kernel.target)
        target = "ascendc" if target == "auto" else target
        platform = self.request["platform"] or str(kernel.platform)
        self.emit({"event": "start", "kernel": name})

        def work() -> dict[str, Any]:
            if self.request["target"] == "npuir":
                answer: dict[str, Any] = sibling("npuir").lowered(kernel, func, out_idx)
                return answer
            return self.lowered(kernel, func, out_idx, workspace_idx, target, platform)

        answer = forked(work, self.folder)
        status = answer.pop("status")
        source = answer.get("source", "")
        more: dict[str, Any] = {key: answer[key] for key in ("phase", "message", "where", "signal") if key in answer}
        if source:
            file = self.folder / f"program-{next(self.numbers)}.cpp"
            file.write_text(source, encoding="utf-8")
            more["source"] = str(file)
        self.told(name, line, status, target=target, platform=platform, **more)
        self.emit({"event": "stop"})
        self.factory = None
        return sibling("zeros").Zeros(kernel, func, out_idx, workspace_idx, answer if status == "accepted" else None)

    def lowered(
        self, kernel: Any, func: Any, out_idx: Any, workspace_idx: Any, target: str, platform: str
    ) -> dict[str, Any]:
        """What ``JITKernel._compile_and_create_adapter`` does, before loading; runs in the forked process."""
        tvm: Any = importlib.import_module("tvm")
        tilelang: Any = importlib.import_module("tilelang")
        adapter: Any = importlib.import_module("tilelang.jit.adapter").CythonKernelAdapter
        libgen: Any = importlib.import_module("tilelang.jit.adapter.libgen")
        with tvm.transform.PassContext(opt_level=3, config=kernel.pass_configs or {}):
            artifact = tilelang.lower(func, target=target, platform=platform)
        programs = [f for _, f in artifact.device_mod.functions_items() if isinstance(f, tvm.tir.PrimFunc)]
        attrs = programs[0].attrs if programs else None
        automatic = [int(i.value) for i in attrs["auto_gm_indices"]] if attrs and "auto_gm_indices" in attrs else None
        generator = libgen.LibraryGenerator
        compiling = generator.compile_lib
        generator.load_lib = lambda self, lib_path=None: None
        generator.compile_lib = lambda self, timeout=None: None
        made = adapter(
            params=artifact.params,
            result_idx=out_idx,
            workspace_idx=workspace_idx,
            auto_gm_idx=automatic,
            target=target,
            platform=platform,
            func_or_mod=func,
            host_mod=artifact.host_mod,
            device_mod=artifact.device_mod,
            kernel_global_source=artifact.kernel_source,
            verbose=False,
            pass_configs=kernel.pass_configs,
        )
        source = made.wrapped_source or artifact.kernel_source
        if self.request["bisheng"]:
            wrong = built(compiling, made.lib_generator, self.folder)
            if wrong:
                return {"status": "rejected", "phase": "bisheng", "message": wrong, "source": source}
        return {
            "status": "accepted",
            "source": source,
            "results": list(made.result_idx),
            "workspaces": [*made.workspace_idx, *made.auto_gm_idx],
        }


def built(compiling: Callable[..., Any], generator: Any, folder: Path) -> str:
    """Compile generated text with bisheng, by the command of ``libgen.py``; its first error, empty if it takes it."""
    log = folder / "bisheng.log"
    with log.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        try:
            compiling(generator)
        except Exception as error:
            failure = one_line(error)
        else:
            return ""
    text = log.read_text(encoding="utf-8", errors="replace")
    errors = [line.strip() for line in text.splitlines() if re.search(r"\berror:", line)]
    return (errors[0] if errors else failure)[:400]


def forked(work: Callable[[], dict[str, Any]], folder: Path) -> dict[str, Any]:
    """The answer of ``work``, done in a forked process; how that ended if there is none."""
    answer, faults = folder / "answer.json", folder / "faults"
    answer.unlink(missing_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        with faults.open("w") as stream:
            faulthandler.enable(stream, all_threads=False)
            try:
                found = work()
            except BaseException as error:
                traceback.print_exc()
                found = {"status": "rejected", "phase": "lowering", "message": one_line(error)}
            part = folder / "answer.part"
            part.write_text(json.dumps(found), encoding="utf-8")
            part.rename(answer)
            os._exit(0)
    _, status = os.waitpid(child, 0)
    if answer.is_file():
        found = json.loads(answer.read_text(encoding="utf-8"))
        assert isinstance(found, dict)
        return found
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    name = signal.Signals(number).name if number else f"exit code {os.waitstatus_to_exitcode(status)}"
    return {"status": "died", "phase": "lowering", "signal": name, "where": dying_pass(faults), "message": ""}


def dying_pass(faults: Path) -> str:
    """The pass of the compiler in which a process died, by the line of its driver; empty where it cannot be told."""
    text = faults.read_text(encoding="utf-8", errors="replace") if faults.is_file() else ""
    for file, line in _FAULT.findall(text):
        if Path(file).name in ("phase.py", "lower.py") and Path(file).parent.name == "engine":
            lines = Path(file).read_text(encoding="utf-8").splitlines()
            found = _PASS.search(lines[int(line) - 1])
            return found.group(1) if found else lines[int(line) - 1].strip()
    return ""


def one_line(error: Any, limit: int = 400) -> str:
    """The last statement of an exception that says what is wrong, with the line of the compiler's source."""
    text = error if isinstance(error, str) else str(error) or repr(error)
    lines = [line.rstrip() for line in text.splitlines()]
    said = [number for number, line in enumerate(lines) if _SAID.search(line)]
    kept = lines[said[-1] :] if said else lines
    found = " ".join(line.strip() for line in kept if line.strip() and not line.startswith("Stack trace"))
    found = _PREFIX.sub("", found)
    kind = "" if isinstance(error, str) else type(error).__name__
    if not said and kind and not found.startswith(kind):
        found = f"{kind}: {found}"
    source = _SOURCE.search(text)
    return found[:limit] + (f" [{source.group(1)}:{source.group(2)}]" if source else "")


@functools.cache
def sibling(name: str) -> types.ModuleType:
    """A script beside this one, which is part of no package here."""
    spec = importlib.util.spec_from_file_location(f"_tl2npu_child_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def first_configuration(compiler: Compiler) -> Callable[..., Any]:
    """In place of ``tilelang.autotune``: kernels get the first configuration, which is compiled and not timed.

    A function that makes them gets what the tuner gives it: two tuples (tilelang-ascend 95acbd7f, tuner.py:299).
    """

    def autotune(func: Any = None, *args: Any, configs: Any = None, **kwargs: Any) -> Any:
        if callable(func):
            return func

        def decorate(inner: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                choices = configs(args, tuple(sorted(kwargs.items()))) if callable(configs) else configs
                given = inspect.signature(inner).bind_partial(*args, **kwargs).arguments
                chosen = {key: value for key, value in (choices[0] if choices else {}).items() if key not in given}
                compiler.note("of autotuned kernels the first configuration is compiled")
                if hasattr(inner, "__jit_impl__"):  # as the tuner gives it: the values need not be hashable
                    return inner(*args, **kwargs, __tune_params=chosen)
                return inner(*args, **kwargs, **chosen)

            return functools.wraps(inner)(call)

        return decorate

    return autotune


def branch() -> str:
    """Which TileLang is installed, by the modules of its language: ``ascendc_pto``, ``npuir``, empty for another."""
    tilelang: Any = importlib.import_module("tilelang")
    language = Path(tilelang.__file__).parent / "language"
    if (language / "ascend_tile.py").is_file():
        return "ascendc_pto"
    return "npuir" if (language / "customize_npuir.py").is_file() else ""


def prepare(request: dict[str, Any], emit: Emit) -> Compiler:
    """Import the compiler, with its ways in taken over."""
    stand_ins = sibling("no_device")
    stand_ins.install()
    compiler = Compiler(request, emit)
    wrapper = types.ModuleType("cython_wrapper")  # only launches need it, and it may not be built
    wrapper.CythonKernelWrapper = lambda *args: stand_ins.Anything("wrapper")  # type: ignore[attr-defined]
    sys.modules["cython_wrapper"] = wrapper
    npuir = request["target"] == "npuir"
    tilelang: Any = (
        sibling("npuir").imported(stand_ins, compiler.note) if npuir else importlib.import_module("tilelang")
    )
    entry: Any = importlib.import_module("tilelang.language.tir.entry")
    parser: Any = importlib.import_module("tvm.script.parser.core.parser").Parser
    profiler: Any = importlib.import_module("tilelang.profiler").Profiler
    jit: Any = sys.modules["tilelang.jit"]._JitImplementation
    tilelang.disable_cache()
    if npuir and branch() == "npuir":
        sibling("npuir").take_over(compiler.compile)
    else:
        kernels: Any = importlib.import_module("tilelang.jit.kernel").JITKernel
        kernels._compile_and_create_adapter = lambda kernel, *args: compiler.compile(kernel, *args)
    entry.parse = functools.partial(compiler.parse, entry.parse)
    parser.report_error = functools.partialmethod(_reported, compiler, parser.report_error)
    jit.__call__ = functools.partialmethod(_jitted, compiler, jit.__call__)
    tilelang.autotune = sys.modules["tilelang.autotuner"].autotune = first_configuration(compiler)  # type: ignore[attr-defined]
    profiler.do_bench = lambda self, *args, **kwargs: 1.0
    for name in ("assert_allclose", "manual_assert_close", "assert_consistent", "run_once"):
        setattr(profiler, name, lambda self, *args, **kwargs: None)
    for module in (sys.modules["tilelang.profiler"], sys.modules.get("tilelang.profiler.bench")):
        if module is not None and hasattr(module, "do_bench"):
            module.do_bench = lambda *args, **kwargs: 1.0  # type: ignore[attr-defined]
    if request["calls"]:
        sys.meta_path.append(stand_ins.Absent())
    return compiler


def _reported(parser: Any, compiler: Compiler, original: Callable[..., Any], node: Any, error: Any) -> Any:
    return compiler.report_error(original, parser, node, error)


def _jitted(implementation: Any, compiler: Compiler, original: Callable[..., Any], func: Any) -> Any:
    return compiler.jitted(original, implementation, func)


def execute(request: dict[str, Any], name: str) -> types.ModuleType:
    """Run the pieces of the file as the module ``name``; each piece is a file, since the front end reads sources."""
    module = types.ModuleType(name)
    module.__file__ = request["path"]
    sys.modules[name] = module
    sys.argv = [request["path"], *request["script_args"]]
    sys.path.insert(0, str(Path(request["path"]).resolve().parent))
    if name != "__main__":
        module.__package__ = package_of(Path(request["path"]).resolve())
    # The front end reads the text of the module, which may be on no disk.
    whole = "".join(text for _, text in request["pieces"])
    linecache.cache[request["path"]] = (len(whole), None, whole.splitlines(keepends=True), request["path"])
    for file, text in request["pieces"]:
        Path(file).write_text(text, encoding="utf-8")
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)
    return module


def package_of(path: Path) -> str:
    """The package that a file is part of, so that it can import from its neighbours.

    What its ``__init__.py`` does is left out: it may import modules whose kernels are still for a GPU.
    """
    folders: list[Path] = []
    while (path.parent / "__init__.py").is_file():
        path = path.parent
        folders.insert(0, path)
    name = ""
    for folder in folders:
        name = f"{name}.{folder.name}".lstrip(".")
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = [str(folder)]
            sys.modules[name] = package
    if folders:
        sys.path.append(str(folders[0].parent))
    return name


def stopped(compiler: Compiler, error: BaseException, what: str) -> None:
    """Tell that code around kernels ended by an exception, unless the verdict on a kernel has told it."""
    if getattr(error, "_told", False):
        return
    traceback.print_exception(type(error), error, error.__traceback__)
    file, line = compiler.place(error) or ("", 0)
    text = one_line(error)
    kind = type(error).__name__
    text = text if text.startswith(kind) else f"{kind}: {text}"
    missing = isinstance(error, (AttributeError, ImportError)) and "tilelang" in text
    missing = missing or (isinstance(error, AttributeError) and "PassConfigKey" in linecached(file, line))
    compiler.emit({"event": "stopped", "message": f"{what}{text}", "file": file, "at": line, "missing": missing})


def linecached(file: str, line: int) -> str:
    """A line of a piece."""
    lines = Path(file).read_text(encoding="utf-8").splitlines() if file and Path(file).is_file() else []
    return lines[line - 1] if 0 < line <= len(lines) else ""


def run_calls(compiler: Compiler) -> int:
    """Load the file as a module and call its factories."""
    request = compiler.request
    name = re.sub(r"\W", "_", Path(request["path"]).stem)
    try:
        module = execute(request, name)
    except BaseException as error:
        stopped(compiler, error, "")
        module = sys.modules[name]
    failed = 0
    for factory, arguments in request["calls"]:
        try:
            values = {key: ast.literal_eval(text) for key, text in arguments.items()}
            ordered = [values.pop(str(number)) for number in range(len(values)) if str(number) in values]
            if not hasattr(module, factory):
                compiler.emit(
                    {
                        "event": "stopped",
                        "message": f"it has no factory {factory!r}",
                        "file": "",
                        "at": 0,
                        "missing": False,
                    }
                )
                failed = 1
                continue
            compiler.factory = (factory, "")
            found = factory_of(module, factory)(*ordered, **values)
            if type(found).__name__ == "PrimFunc":
                compile_as_written(compiler, module, factory, found)
        except BaseException as error:
            stopped(compiler, error, f"{factory}: ")
            failed = 1
    return failed


def factory_of(module: types.ModuleType, name: str) -> Any:
    """What makes the kernel: behind a function of an eager kernel's name, the factory that it calls."""
    found = getattr(module, name)
    if type(found) is types.FunctionType and not hasattr(found, "__wrapped__"):
        names = (f"{name.rstrip('_')}_kernel", f"{name}_factory")
        return next((getattr(module, other) for other in names if hasattr(module, other)), found)
    return found


def compile_as_written(compiler: Compiler, module: types.ModuleType, factory: str, program: Any) -> None:
    """Compile a prim_func that a plain factory gave, with the options that the file compiles it with elsewhere."""
    tilelang: Any = importlib.import_module("tilelang")
    for _, text in compiler.request["pieces"]:
        for call in ast.walk(ast.parse(text)):
            inner = call.args[0] if isinstance(call, ast.Call) and call.args else None
            if (
                isinstance(call, ast.Call)
                and ast.unparse(call.func).endswith("compile")
                and isinstance(inner, ast.Call)
                and ast.unparse(inner.func) == factory
            ):
                options = {
                    k.arg: eval(compile(ast.Expression(k.value), "<options>", "eval"), module.__dict__)
                    for k in call.keywords
                    if k.arg
                }
                tilelang.compile(program, **options)
                return
    compiler.note(f"nothing in the file compiles {factory}: compiled without pass_configs")
    tilelang.compile(program)


def main(request: dict[str, Any], emit: Emit) -> int:
    """Do the request; 1 if code around kernels stopped."""
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # torch would load the real torch_npu
    os.environ["TILELANG_CACHE_DIR"] = str(Path(request["folder"]) / "cache")
    os.environ["TMPDIR"] = request["folder"]
    if request["platform"]:
        os.environ["TL_PLATFORM"] = request["platform"]
        os.environ["TILELANG_ASCEND_DEVICE_NAME"] = _DEVICES[request["platform"]]  # branch npuir asks for it
    compiler = prepare(request, emit)
    emit({"event": "begin", "branch": branch()})
    if request["calls"]:
        return run_calls(compiler)
    try:
        execute(request, "__main__")
    except SystemExit as stop:
        if stop.code not in (None, 0):
            text = f"it ended with {stop.code!r}"
            emit({"event": "stopped", "message": text, "file": "", "at": 0, "missing": False})
            return 1
    except BaseException as error:
        stopped(compiler, error, "")
        return 1
    return 0
