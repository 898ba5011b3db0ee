"""What a repository says of itself is data: nothing in it is executed, and nothing in it hides what has changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tl2npu.cli import cli
from tl2npu.source.git import GitError, commit, status

KERNEL = "import tilelang\n# prim_func\nx = 1\n"


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    allowed = ["-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *identity, *allowed, *arguments], cwd=root, check=True, capture_output=True)
    return done.stdout.decode()


def repository(place: Path, *options: str) -> Path:
    place.mkdir(parents=True)
    (place / "k.py").write_text(KERNEL)
    (place / "other.py").write_text("other\n")
    git(place, "init", "-q", *options)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "c")
    return place


def fires(root: Path) -> str:
    """A program that leaves a trace, as a shell command."""
    return f"touch {root.parent}/FIRED; exit 1"


def fsmonitor(root: Path) -> None:
    git(root, "config", "core.fsmonitor", fires(root))


def fsmonitor_by_include(root: Path) -> None:
    (root / ".git" / "more").write_text(f'[core]\n\tfsmonitor = "{fires(root)}"\n')
    git(root, "config", f"includeIf.gitdir:{root}/.path", "more")


def fsmonitor_of_a_worktree(root: Path) -> None:
    git(root, "config", "extensions.worktreeConfig", "true")
    git(root, "config", "--worktree", "core.fsmonitor", fires(root))


def filtered(root: Path, key: str) -> None:
    (root / ".gitattributes").write_text("*.py filter=any.thing=x\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "c")
    git(root, "config", f"filter.any.thing=x.{key}", fires(root))
    git(root, "config", "filter.any.thing=x.required", "true")
    (root / "other.py").write_text("OTHER\n")


def clean(root: Path) -> None:
    filtered(root, "clean")


def process(root: Path) -> None:
    filtered(root, "process")


def submodule(root: Path) -> None:
    inner = repository(root.parent / "inner")
    git(root, "submodule", "--quiet", "add", str(inner), "sub")
    git(root, "commit", "-qm", "c")
    git(root / "sub", "config", "core.fsmonitor", fires(root))


def missing_objects(root: Path) -> None:
    """A repository that fetches what it lacks, by a program of its choice."""
    git(root, "config", "core.repositoryFormatVersion", "1")
    git(root, "config", "extensions.partialClone", "origin")
    git(root, "config", "remote.origin.url", str(root))
    git(root, "config", "remote.origin.promisor", "true")
    git(root, "config", "remote.origin.uploadpack", f"sh -c '{fires(root)}'")
    tree = git(root, "rev-parse", "HEAD^{tree}").strip()
    (root / ".git" / "objects" / tree[:2] / tree[2:]).unlink()


ATTACKS = (fsmonitor, fsmonitor_by_include, fsmonitor_of_a_worktree, clean, process, submodule, missing_objects)


def harmless_by_now(root: Path) -> None:
    """Everything else that names a program."""
    for key in (
        "core.hooksPath core.sshCommand core.pager core.editor core.askPass core.gitProxy core.alternateRefsCommand "
        "diff.external diff.x.command diff.x.textconv alias.status alias.config alias.rev-parse pager.status "
        "pager.config gpg.program credential.helper merge.x.driver sequence.editor url.x.insteadOf "
        "interactive.diffFilter uploadpack.packObjectsHook trace2.eventTarget"
    ).split():
        git(root, "config", key, fires(root))
    (root / ".gitattributes").write_text("*.py diff=x merge=x\n")
    git(root, "add", "-A")
    for name in ("post-index-change", "pre-commit", "fsmonitor-watchman", "reference-transaction"):
        hook = root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{fires(root)}\n")
        hook.chmod(0o755)


@pytest.mark.parametrize("attack", [*ATTACKS, harmless_by_now], ids=lambda attack: attack.__name__)
def test_nothing_of_the_repository_is_executed(tmp_path: Path, attack: Callable[[Path], None]) -> None:
    root = repository(tmp_path / "repo")
    attack(root)
    trace = tmp_path / "FIRED"
    trace.unlink(missing_ok=True)
    try:
        status(root)
        assert attack is not missing_objects
    except GitError:
        assert attack is missing_objects  # no objects, no answer
    commit(root)
    CliRunner().invoke(cli, ["migrate", str(root / "k.py")], catch_exceptions=False)
    CliRunner().invoke(cli, ["check", str(root)], catch_exceptions=False)
    assert not trace.exists()
    if attack in ATTACKS:  # it is one
        (root / "k.py").write_text(KERNEL)
        subprocess.run(["git", "status"], cwd=root, capture_output=True, check=False, timeout=20)
        assert trace.exists()


def test_what_has_changed_is_told(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    git(root, "mv", "--", "other.py", "-s.py")
    (root / "k.py").write_text("edited\n")
    (root / ".git" / "info" / "exclude").write_text("*.log\n")
    (root / "a.log").write_text("")
    (root / "fresh\n.py").write_text("")
    found = status(root)
    assert found == {"k.py": " M", "-s.py": "A ", "other.py": "D ", "a.log": "!!", "fresh\n.py": "??"}


def test_a_filter_that_is_not_run_hides_nothing(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    (root / ".gitattributes").write_text("other.py filter=same\n")
    git(root, "config", "filter.same.clean", "printf 'other\\n'")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "c")
    (root / "other.py").write_text("a day\n")
    assert git(root, "status", "--porcelain") == ""
    assert status(root) == {"other.py": " M"}


def settings(root: Path) -> None:
    git(root, "config", "core.autocrlf", "true")
    (root / "k.py").unlink()
    git(root, "checkout", "k.py")
    assert b"\r\n" in (root / "k.py").read_bytes()
    os.utime(root / "k.py", (1, 1))  # so that it is read


def linked(root: Path) -> None:
    git(root, "worktree", "add", "-q", "../elsewhere", "-b", "b")
    root.rename(root.parent / "main")
    (root.parent / "elsewhere").rename(root)
    git(root.parent / "main", "worktree", "repair", str(root))


def divided_index(root: Path) -> None:
    git(root, "update-index", "--split-index")


def sparse(root: Path) -> None:
    (root / "deep").mkdir()
    (root / "deep" / "d.py").write_text("")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "c")
    git(root, "sparse-checkout", "init", "--cone", "--sparse-index")


def moved(root: Path) -> None:
    git(root, "config", "core.worktree", str(root.parent))


def many_branches(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "a/b")
    git(root, "pack-refs", "--all")


@pytest.mark.parametrize(
    "kind", [settings, linked, divided_index, sparse, moved, many_branches], ids=lambda kind: kind.__name__
)
def test_repositories_of_every_kind_are_clean(tmp_path: Path, kind: Callable[[Path], None]) -> None:
    root = repository(tmp_path / "repo")
    kind(root)
    assert status(root) == {}
    (root / "k.py").write_text("edited\n")
    assert status(root) == {"k.py": " M"}


def test_repositories_without_commits_and_with_other_digests(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", "--object-format=sha256")
    assert status(root) == {}
    git(tmp_path, "init", "-q", "empty")
    (tmp_path / "empty" / "k.py").write_text("")
    assert status(tmp_path / "empty") == {"k.py": "??"}
    assert commit(tmp_path / "empty") == ""
    assert git(root, "rev-parse", "HEAD").startswith(commit(root))
    assert len(commit(root)) == 10


def test_the_environment_of_a_hook_is_that_of_another_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = repository(tmp_path / "repo"), repository(tmp_path / "other")
    (other / "k.py").write_text("edited\n")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {tmp_path}/FIRED")
    assert status(root) == {}
    assert not (tmp_path / "FIRED").exists()


def test_git_is_run_in_one_place() -> None:
    package = Path(__file__).resolve().parent.parent.parent / "tl2npu"
    runs = [path.name for path in package.rglob("*.py") if '"git"' in path.read_text(encoding="utf-8")]
    assert runs == ["git.py"]
