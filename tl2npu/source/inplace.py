"""Rewriting files in place: atomically, and never where the author could not get the original back."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from tl2npu.source.git import GitError, NoGit, status
from tl2npu.source.whole import write_whole


class WriteError(Exception):
    """A file that was left as it is; ``str()`` is one line that says why, ``place`` the file among several."""

    place: Path | None = None


class InPlace:
    """Writes files of one run. The state of each git work tree is asked for once, at its first file."""

    def __init__(self, allow_dirty: bool = False) -> None:
        self.allow_dirty = allow_dirty
        self._status: dict[Path, dict[str, str]] = {}

    def write(self, path: Path, old: bytes, new: bytes) -> Path | None:
        """Replace the content ``old`` of a file by ``new``; mode and symbolic links stay.

        Outside of a git work tree, and for files that git ignores, the original stays beside the file; its path is
        returned. Raises :class:`WriteError` for read-only files, files with uncommitted changes (without
        ``allow_dirty``) and files that no longer hold ``old``.
        """
        try:
            target, mode, now = self._ready(path, old, new)
            if now == new:
                return None  # by another run
            backup = self._backup_needed(target)
            saved = _save_beside(target, old, mode) if backup else None
            try:
                _replace(target, new, mode)
            except BaseException:  # also Ctrl-C, which may come when the file has its new text already
                if saved is not None and target.read_bytes() == old:
                    saved.unlink()
                raise
        except OSError as error:
            raise WriteError(f"cannot write: {error.strerror or error}") from None
        return saved

    def check(self, path: Path, old: bytes, new: bytes) -> None:
        """Raise what :meth:`write` would raise, as far as that can be told."""
        try:
            target, _, now = self._ready(path, old, new)
            if now != new:
                self._backup_needed(target)
        except OSError as error:
            raise WriteError(f"cannot write: {error.strerror or error}") from None

    def _ready(self, path: Path, old: bytes, new: bytes) -> tuple[Path, int, bytes]:
        """The file itself, its mode and what it holds now."""
        target = path.resolve(strict=True)
        mode = stat.S_IMODE(target.stat().st_mode)
        if not mode & 0o222 or not os.access(target, os.W_OK):
            raise WriteError("file is read-only")
        now = target.read_bytes()
        if now not in (old, new):
            raise WriteError("file has changed on disk meanwhile")
        return target, mode, now

    def take_back(self, path: Path, old: bytes, new: bytes, saved: Path | None) -> None:
        """Undo a :meth:`write`, which returned ``saved``; a file that has changed since stays."""
        try:
            target = path.resolve(strict=True)
            if target.read_bytes() == new:
                _replace(target, old, stat.S_IMODE(target.stat().st_mode))
                if saved is not None:
                    saved.unlink()
        except OSError as error:
            raise WriteError(f"cannot write: {error.strerror or error}") from None

    def _backup_needed(self, target: Path) -> bool:
        root = repository_root(target)
        if root is None:
            return True
        if root not in self._status:
            try:
                self._status[root] = _git_status(root)
            except WriteError:
                if not self.allow_dirty:
                    raise
                self._status[root] = {}
        known = self._status[root]
        relative = target.relative_to(root)
        for part in (relative, *relative.parents):  # whole ignored directories are one entry
            state = known.get(part.as_posix())
            if state == "!!":
                return True
            if state is not None and part == relative and not self.allow_dirty:
                what = "is not tracked by git" if state == "??" else "has uncommitted changes"
                raise WriteError(f"file {what} (--allow-dirty overrides)")
        return False


def write_file(path: Path, data: bytes) -> None:
    """Write a file, new or not, atomically; directories are made. Raises :class:`WriteError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()
        _replace(target, data, stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644)
    except OSError as error:
        raise WriteError(f"cannot write {path.as_posix()}: {error.strerror or error}") from None


def repository_root(path: Path) -> Path | None:
    """The root of the git work tree that holds a file; None outside of one."""
    for place in path.resolve().parents:
        if (place / ".git").exists():
            return place
    return None


def _git_status(root: Path) -> dict[str, str]:
    try:
        return status(root)
    except NoGit:
        raise WriteError(
            "git is not installed, cannot tell whether the file is committed (--allow-dirty overrides)"
        ) from None
    except GitError as error:
        raise WriteError(f"{error} (--allow-dirty overrides)") from None


def _save_beside(target: Path, data: bytes, mode: int) -> Path:
    number = 0
    while True:
        saved = target.with_name(target.name + (f".orig.{number}" if number else ".orig"))
        try:
            file = saved.open("xb")
        except FileExistsError:
            number += 1
            continue
        try:
            with file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            saved.chmod(mode)
        except BaseException:
            saved.unlink()
            raise
        return saved


def _same_owner(path: Path, example: Path) -> None:
    """Matters where somebody works on other people's files; needs rights that few have."""
    with suppress(OSError, AttributeError):
        state = example.stat()
        if state.st_uid != os.geteuid() or state.st_gid != os.getegid():
            os.chown(path, state.st_uid, state.st_gid)


def _replace(target: Path, data: bytes, mode: int) -> None:
    def finish(temporary: Path) -> None:
        _same_owner(temporary, target)
        temporary.chmod(mode)

    write_whole(target, data, lasting=True, finish=finish)
