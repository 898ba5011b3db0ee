"""The only place that runs git: it is asked about a repository, and nothing that the repository names is executed.

The configuration of a repository names programs in many places (``core.fsmonitor``, ``filter.*.clean``, hooks, remotes
that lack objects, submodules with a configuration of their own), and git gets new ones. So nothing is switched off one
by one: ``git status`` works in an empty git directory of ours, which borrows the index and the objects and knows only
the settings in ``_HARMLESS``. What a filter would change then counts as changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_HARMLESS = {
    f"core.{name}"
    for name in (
        *("autocrlf", "eol", "filemode", "ignorecase", "precomposeunicode", "symlinks", "longpaths"),
        *("trustctime", "checkstat", "sparsecheckout", "sparsecheckoutcone", "excludesfile"),
    )
}
"""How files are compared and which are ignored. None of these names a program."""

_PATIENCE = 600.0  # seconds; a configuration may include a pipe that nobody writes to


class GitError(Exception):
    """git cannot tell; ``str()`` is one line."""


class NoGit(GitError):
    """git is not installed."""


def status(root: Path) -> dict[str, str]:
    """State of every file that differs from the last commit, by its path in the work tree; ``!!`` is ignored.

    ``root``: the root of the work tree. Submodules are not looked into. Raises :class:`GitError`.
    """
    where = _ask(root, "rev-parse", "--git-dir", "--git-common-dir", "--show-object-format", "HEAD")
    directory, shared, form, head = where.split("\n")[:4]
    own, common = root / directory, root / shared
    settings = _settings(root)
    try:
        with tempfile.TemporaryDirectory(prefix="tl2npu-git-") as name:
            stand_in = Path(name)
            _furnish(stand_in, own, common, form, head)
            extra = {
                "GIT_DIR": name,
                "GIT_WORK_TREE": str(root),
                "GIT_INDEX_FILE": str(own / "index"),
                "GIT_OBJECT_DIRECTORY": str(common / "objects"),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "HOME": name,
                "XDG_CONFIG_HOME": name,
                "GIT_CONFIG_COUNT": str(len(settings)),
            }
            for number, (key, value) in enumerate(settings.items()):
                extra |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
            asked = ("--porcelain", "-z", "--untracked-files=all", "--ignored=matching")
            told = _ask(root, "status", *asked, "--no-renames", "--ignore-submodules=all", extra=extra)
    except OSError as error:
        raise GitError(f"git status failed: {error.strerror or error}") from None
    return {entry[3:].rstrip("/"): entry[:2] for entry in told.split("\0") if entry}


def commit(root: Path) -> str:
    """The commit of a work tree, in short; empty where git cannot tell."""
    try:
        return _ask(root, "rev-parse", "--short=10", "--verify", "HEAD").strip()
    except GitError:
        return ""


def _settings(root: Path) -> dict[str, str]:
    """The harmless settings of the user and of the repository. ``git config`` only reads."""
    found: dict[str, str] = {}
    for entry in _ask(root, "config", "--list", "-z").split("\0"):
        key, has_value, value = entry.partition("\n")
        if key in _HARMLESS:
            found[key] = value if has_value else "true"
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    ignored = found.get("core.excludesfile", f"{home}/git/ignore")  # as git has it; it shall see another home
    return {**found, "core.excludesfile": os.path.expanduser(ignored)}  # noqa: PTH111


def _furnish(stand_in: Path, own: Path, common: Path, form: str, head: str) -> None:
    """Make a git directory. ``own``, ``common``: the directories of the work tree, and of all trees of a repository."""
    for name in ("refs", "objects", "info"):
        (stand_in / name).mkdir()
    is_commit = re.fullmatch(r"[0-9a-f]{40,64}", head) is not None
    (stand_in / "HEAD").write_text(f"{head}\n" if is_commit else "ref: refs/heads/none\n", encoding="ascii")
    plain = form == "sha1"
    extension = "" if plain else f"[extensions]\n\tobjectFormat = {form}\n"
    (stand_in / "config").write_text(f"[core]\n\trepositoryformatversion = {int(not plain)}\n{extension}", "ascii")
    copied = [(common / "info" / name, stand_in / "info" / name) for name in ("exclude", "attributes")]
    copied += [(own / "info" / "sparse-checkout", stand_in / "info" / "sparse-checkout")]
    copied += [(part, stand_in / part.name) for part in own.glob("sharedindex.*")]
    for source, target in copied:
        if source.is_file():
            shutil.copyfile(source, target)


def _ask(root: Path, *arguments: str, extra: Mapping[str, str] | None = None) -> str:
    """What git prints, asked at the root of a work tree; a repository around it is another one."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_CEILING_DIRECTORIES": str(root.parent)}
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=root,
            env=env | dict(extra or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
        )
    except FileNotFoundError:
        raise NoGit("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {arguments[0]} has no answer after {_PATIENCE:.0f} seconds") from None
    told = os.fsdecode(done.stdout)
    unborn = arguments[0] == "rev-parse" and told.endswith("\nHEAD\n")  # no commit yet
    if done.returncode and not unborn:
        message = os.fsdecode(done.stderr).strip().split("\n")[0]
        raise GitError(f"git {arguments[0]} failed: {message}")
    return told
