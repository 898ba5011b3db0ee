from __future__ import annotations

import json
import os
import subprocess
from hashlib import blake2b
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fixture_case import ROOT as FIXTURES
from tl2npu import migration
from tl2npu.cli import cli
from tl2npu.files import Found, collect
from tl2npu.options import Options
from tl2npu.project import Batch, Outcome, run
from tl2npu.project import cache as caches
from tl2npu.project.cache import Cache
from tl2npu.project.cache_folder import CacheError, cache_directory, clear
from tl2npu.results import Change, Diagnostic, FileResult, KernelResult, Verified

KERNEL = b"import tilelang\nprim_func\n"
WORKED = Path("worked.txt")
RESULT = FileResult(
    "k.py",
    "old",
    "new",
    kernels=(
        KernelResult("f", 1, "vid", "developer", "migrated", "so", ("TL201",), Verified("sim", 2, 0.5)),
        KernelResult("g", 2, "vid", "none", "refused", ""),
    ),
    diagnostics=(
        Diagnostic("TL201", "n", "error", 3, "m\u2028ü\ud800", end_line=4),
        Diagnostic("TL1", "", "info", 1, ""),
    ),
    changes=(Change("TL2", 1, "c", "f"),),
    depends=(("other.py", "ab"), ("none.py", "")),
)


def fake(text: str, path: str, options: Options, leave: object = None, together: bool = False) -> FileResult:
    with WORKED.open("a") as log:
        log.write(f"{path}\n")
    if "syntax" in text:
        return FileResult(path, text, text, "line 1: syntax error")
    depends = (("lib.py", blake2b(Path("lib.py").read_bytes()).hexdigest()),) if "lib" in text else ()
    return FileResult(path, text, text.replace("old", "new"), depends=(*depends, ("gone.py", "")))


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(migration, "migrate_text", fake)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def worked() -> list[str]:
    """What was worked on since the last call."""
    lines = WORKED.read_text().split() if WORKED.exists() else []
    WORKED.unlink(missing_ok=True)
    return sorted(lines)


def outcomes(options: Options | None = None, whole: bool = False) -> list[Outcome]:
    options = options or Options()
    cache = Cache.of(Path(".tl2npu_cache"), "migrate", options)
    return list(run(collect([Path()]), "migrate", options, Batch(1, whole=whole, cache=cache)))


def entries() -> list[Path]:
    return sorted(Path(".tl2npu_cache").glob("*/*.json"))


def write(**contents: bytes) -> None:
    for name, data in contents.items():
        Path(f"{name}.py").write_bytes(KERNEL + data)


def test_results_survive_json() -> None:
    assert caches.loads(caches.dumps(RESULT), FileResult) == RESULT
    with pytest.raises(TypeError):
        caches.loads(b'{"path": 3}', FileResult)
    with pytest.raises(KeyError):
        caches.loads(b'{"path": "a", "zzz": 3}', FileResult)
    with pytest.raises(ValueError, match="index"):
        caches.loads(
            b'{"path": "a", "diagnostics": [{"code":"a","name":"","severity":"x","line":1,"message":""}]}', FileResult
        )


@pytest.mark.parametrize("name", ["gpu/flash_attention", "workspace/row_scaled_gemm_anchor"])
def test_real_results_survive_json(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    path = FIXTURES / name / "before.py"
    result = migration.migrate_text(path.read_text(encoding="utf-8"), str(path), Options())
    assert result.changes
    assert caches.loads(caches.dumps(result), FileResult) == result


def test_the_second_run_works_on_nothing_and_says_the_same() -> None:
    write(a=b"old", b=b"same")
    first = outcomes()
    assert worked() == ["a.py", "b.py"]
    assert outcomes() == first
    assert outcomes(whole=True) == first
    assert worked() == []
    assert Path(".tl2npu_cache/.gitignore").read_text() == "*\n"
    assert Path(".tl2npu_cache/CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_what_a_result_rests_on() -> None:
    write(a=b"old lib", b=b"old")
    Path("lib.py").write_bytes(b"1")
    outcomes()
    worked()
    Path("lib.py").write_bytes(b"2")
    outcomes()
    assert worked() == ["a.py"]
    write(b=b"older")
    outcomes()
    assert worked() == ["b.py"]
    outcomes(Options(device="A5"))
    assert worked() == ["a.py", "b.py"]
    Path("gone.py").write_bytes(b"it came after all")
    outcomes()
    assert worked() == ["a.py", "b.py"]
    Path("gone.py").unlink()
    Path("pyproject.toml").write_text("[tool.black]\nline-length = 100\n")
    caches._settings.cache_clear()
    outcomes()
    assert worked() == ["a.py", "b.py"]
    outcomes()
    assert worked() == []


def test_tasks_code_and_places_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache.of(Path("c"), "migrate", Options())
    assert cache.salt != Cache.of(Path("c"), "check", Options()).salt
    keys = {cache.key(Found(Path(name), Path()), KERNEL) for name in ("a.py", "b.py", "sub/a.py")}
    assert len(keys) == 3
    caches._code.cache_clear()
    monkeypatch.setattr(caches, "_stamp", lambda path: str(path))
    assert cache.salt != Cache.of(Path("c"), "migrate", Options()).salt
    caches._code.cache_clear()


def test_errors_are_not_remembered() -> None:
    write(a=b"syntax")
    outcomes()
    assert entries() == []
    outcomes()
    assert worked() == ["a.py", "a.py"]


@pytest.mark.parametrize("damage", [b"", b"x", b"\0" * 50, None])
def test_damaged_entries_count_as_not_there(damage: bytes | None) -> None:
    write(a=b"old")
    first = outcomes()
    (entry,) = entries()
    data = entry.read_bytes()
    for broken in [damage] if damage is not None else [data[:-1], data.replace(b"new", b"NEW"), data + b" "]:
        worked()
        entry.write_bytes(broken)
        assert outcomes() == first
        assert worked() == ["a.py"]
        assert entry.read_bytes() == data


def test_a_valid_digest_over_nonsense() -> None:
    write(a=b"old")
    first = outcomes()
    (entry,) = entries()
    for body in (b"[]", b"{}", b'{"path": 3}', b'{"path": "a", "unknown": 1}', b"not json"):
        worked()
        entry.write_bytes(caches._digest(body).hex().encode() + b"\n" + body)
        assert outcomes() == first
        assert worked() == ["a.py"]


def test_nothing_writable_means_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    write(a=b"old")
    Path(".tl2npu_cache").write_text("in the way")
    assert outcomes()[0].result.changed
    assert Path(".tl2npu_cache").read_text() == "in the way"
    assert worked() == ["a.py"]


def test_an_entry_that_vanishes_during_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    write(a=b"old", b=b"old")
    first = outcomes()
    worked()
    real = Cache.holds
    monkeypatch.setattr(Cache, "holds", lambda self, key: real(self, key) and (self._path(key).unlink() or True))
    assert outcomes() == first
    assert worked() == ["a.py", "b.py"]


def test_the_size_is_bounded() -> None:
    cache = Cache(Path("c"), b"")
    for number in range(10):
        cache.put(f"{number:032x}", RESULT)
        os.utime(cache._path(f"{number:032x}"), (number, number))
    stale = Path(f"c/00/.{0:030x}.json.x.tmp")
    stale.write_bytes(b"of a run that was killed")
    os.utime(stale, (0, 0))
    size = cache._path(f"{0:032x}").stat().st_size
    cache.shrink(3 * size)
    assert [path.stem[-1] for path in sorted(Path("c").glob("*/*"))] == ["7", "8", "9"]


def test_where_it_lies(tmp_path: Path) -> None:
    sub = tmp_path / "repository" / "sub"
    sub.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", sub.parent], check=True)
    assert cache_directory(sub, None, None) == sub.parent / ".tl2npu_cache"
    assert cache_directory(sub, Path("x"), tmp_path / "pyproject.toml") == Path("x")
    assert cache_directory(sub, None, sub / "pyproject.toml") == sub / ".tl2npu_cache"
    assert cache_directory(tmp_path, None, None) == tmp_path / ".tl2npu_cache"
    (tmp_path / "pyproject.toml").unlink()
    assert cache_directory(tmp_path, None, None) is None


def test_the_command_line() -> None:
    def call(*arguments: str) -> str:
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code in (0, 1), result.output
        return result.output

    write(a=b"old")
    call("migrate", ".", "--check", "--no-cache")
    assert not Path(".tl2npu_cache").exists()
    told = call("migrate", ".", "--check")
    assert worked() == ["a.py", "a.py"]
    assert call("migrate", ".", "--check") == told
    assert call("migrate", "a.py", "--check", "--explain") == told
    assert worked() == []
    call("migrate", ".", "--check", "--debug")
    assert worked() == ["a.py"]
    call("migrate", ".", "--check", "--cache-dir", "other")
    assert worked() == ["a.py"]
    assert list(Path("other").glob("*/*.json"))
    assert Path(call("cache", "dir").strip()).samefile(".tl2npu_cache")
    assert int(call("cache", "clear").split()[0]) > 0
    assert not Path(".tl2npu_cache").exists()
    assert call("cache", "clear") == "0 bytes removed\n"
    call("migrate", "a.py")
    assert Path("a.py").read_bytes() == KERNEL + b"new"


def listing(place: Path) -> dict[str, bytes]:
    found = (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in found}


def own(place: Path) -> None:
    """A folder of somebody's, with names that look like those of a cache."""
    for name in (".gitignore", "CACHEDIR.TAG", "ab/important.json", f"cd/{0:030x}.json", "data/x"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("Signature: 8a477f597d28d172789f06886806bc55\n")


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        (".", "is not inside of the project"),
        ("..", "is not inside of the project"),
        ("sub/../..", "is not inside of the project"),
        ("../elsewhere", "is not inside of the project"),
        ("../elsewhere/new", "is not inside of the project"),
        ("link", "is not inside of the project"),
        ("link/new", "is not inside of the project"),
        ("{outside}", "is not inside of the project"),
        ("{outside}/new", "is not inside of the project"),
        ("sub", "is not a cache of tl2npu and not empty"),
        ("sub/../sub", "is not a cache of tl2npu and not empty"),
        ("inner", "is not a cache of tl2npu and not empty"),
        ("{project}/sub", "is not a cache of tl2npu and not empty"),
        ("a.py", "cannot be used: it names a file"),
        ("a.py/x", "cannot be used"),
        ("loop", "cannot be used"),
    ],
)
def test_a_folder_that_is_not_ours_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, why: str
) -> None:
    project, outside = tmp_path / "project", tmp_path / "elsewhere"
    own(project / "sub")
    own(outside)
    (project / "a.py").write_bytes(KERNEL + b"old")
    (project / "link").symlink_to(outside)
    (project / "inner").symlink_to("sub")
    (project / "loop").symlink_to("loop")
    setting = setting.format(outside=outside.as_posix(), project=project.as_posix())
    (project / "pyproject.toml").write_text(f"[tool.tl2npu]\ncache-dir = {setting!r}\n")
    before = listing(tmp_path)
    monkeypatch.chdir(project)
    for command in (
        ["migrate", ".", "--check"],
        ["check", "."],
        ["migrate", "--verify", "--check", "a.py"],
        ["cache", "clear"],
        ["cache", "dir"],
        ["config", "--validate"],
    ):
        result = CliRunner().invoke(cli, command)
        assert (result.exit_code, why in result.output) == (2, True), (command, result.output)
    (project / "pyproject.toml").write_text("[tool.tl2npu]\n")
    before["project/pyproject.toml"] = b"[tool.tl2npu]\n"
    assert CliRunner().invoke(cli, ["migrate", ".", "--check", "--cache-dir", setting]).exit_code == 2
    assert CliRunner().invoke(cli, ["migrate", ".", "--check", "--no-cache", "--cache-dir", setting]).exit_code == 1
    worked()
    assert listing(tmp_path) == before


def test_a_new_folder_and_an_empty_one_become_caches(tmp_path: Path) -> None:
    write(a=b"old")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".CACHEDIR.TAG.abc.tmp").write_text("of a run that was killed")
    for setting in ("new/er", "empty", str(tmp_path / "absolute")):
        CliRunner().invoke(cli, ["check", ".", "--cache-dir", setting])
        CliRunner().invoke(cli, ["migrate", ".", "--check", "--cache-dir", setting])
        assert len(list(Path(setting).glob("*/*.json"))) == 2


def test_what_is_in_the_default_place_stays(tmp_path: Path) -> None:
    write(a=b"old")
    own(tmp_path / ".tl2npu_cache")
    before = listing(tmp_path)
    assert CliRunner().invoke(cli, ["migrate", ".", "--check"]).exit_code == 1
    assert CliRunner().invoke(cli, ["cache", "clear"]).exit_code == 2
    worked()
    assert listing(tmp_path) == before
    with pytest.raises(CacheError, match="is not a cache"):
        clear(tmp_path / ".tl2npu_cache")
    assert clear(tmp_path / "nothing") == 0


def test_only_entries_are_cleared_and_shrunk(tmp_path: Path) -> None:
    """A folder with our mark may come with a repository, with links in it; people put files anywhere."""
    write(a=b"old")
    outside = tmp_path / "outside"
    own(outside)
    outcomes()
    place = tmp_path / ".tl2npu_cache"
    (shelf,) = {path.parent for path in entries()}
    (shelf / "notes.json").write_text("x")
    for number in range(256):
        if not (place / f"{number:02x}").exists():
            (place / f"{number:02x}").symlink_to(outside / "cd")
    (shelf / f"{1:030x}.json").symlink_to(outside / "data" / "x")
    before = listing(outside)
    write(a=b"old", b=b"old, too", c=b"old as well")
    outcomes()
    Cache(place, b"").shrink(0)
    assert listing(outside) == before
    assert clear(place) == 0
    assert listing(outside) == before
    assert (shelf / "notes.json").read_text() == "x"
    told = CliRunner().invoke(cli, ["cache", "clear"]).output
    assert told == f"0 bytes removed; other files in {place} stay\n"


def test_two_runs_that_meet() -> None:
    cache = Cache(Path("c"), b"")
    key = "0" * 32
    cache.put(key, RESULT)
    Cache(Path("c"), b"").put(key, RESULT)
    assert list(Path("c/00").iterdir()) == [cache._path(key)]
    body = cache._path(key).read_bytes().partition(b"\n")[2]
    assert "old_text" not in json.loads(body)
