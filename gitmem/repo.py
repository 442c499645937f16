"""Where a repository is: its common git folder, this worktree's git folder, and the worktree.

It is found as git finds it, but without starting git, because every command begins here.
"""

from __future__ import annotations

import os
import stat

from .errors import StoreError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# O_NONBLOCK: do not wait for the writer of a pipe.
READING = os.O_RDONLY | os.O_NONBLOCK
# Only a config with one of these words can belong to an unsupported repository.
_SUSPICIOUS = (b"extensions", b"mirror", b":refs/*", b":refs/g", b":*", b":r*")
# The supported extensions, each with its supported values; () allows any value.
_EXTENSIONS = {
    "noop": (), "noop-v1": (), "partialclone": (), "preciousobjects": (), "relativeworktrees": (),
    "submodulepathconfig": (), "worktreeconfig": (),
    "objectformat": ("sha1", "sha256"), "refstorage": ("files", "reftable"),
}  # fmt: skip
# The state folders of the repositories that this process has met, see `local_files.link_at`.
STATES: set[str] = set()
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}


class Repo:
    """A repository as seen from one of its worktrees. Paths are absolute, with symbolic links resolved.

    Attributes:
        common: The git folder that all worktrees share.
        git_dir: This worktree's git folder; the same as `common` in the main worktree.
        worktree: The top folder of the worktree, or None if the repository is bare.
        by_folder: Whether the folder itself was taken as the git folder, not found by a `.git` or GIT_DIR. Then
            `safe.bareRepository` applies.
    """

    def __init__(self, common: str, git_dir: str, worktree: str | None, *, by_folder: bool = False) -> None:
        self.common = common
        self.git_dir = git_dir
        self.worktree = worktree
        self.by_folder = by_folder
        STATES.add(self.state)

    @property
    def state(self) -> str:
        """The folder of gitmem's files, shared by all worktrees. It may not exist yet."""
        return os.path.join(self.common, "gitmem")

    @property
    def tree(self) -> str:
        """What tells this worktree from every other one of the clone, see `tree_of`."""
        return tree_of(self.git_dir, self.common) or os.path.basename(self.git_dir)

    def __repr__(self) -> str:
        return f"Repo({self.common!r}, {self.git_dir!r}, {self.worktree!r})"


def find(
    start: str,
    *,
    named: bool = False,
    git_dir: str | None = None,
    work_tree: str | None = None,
    common_dir: str | None = None,
) -> Repo:
    """Return the repository that contains a folder.

    In parent folders only a `.git` counts: a checkout may contain folders that imitate bare repositories, with a config
    of their own. `start` itself may be a bare repository if no parent folder has a `.git`, or if the user named it.

    Args:
        start: A folder, usually the current one.
        named: Whether the user named this folder, as with `-C`.
        git_dir: The value of GIT_DIR, if set; then parent folders are not searched. Relative to `start`.
        work_tree: The value of GIT_WORK_TREE, if set. Relative to `start`.
        common_dir: The value of GIT_COMMON_DIR, if set. Relative to `start`.

    Raises:
        UsageError: `not-a-repository`.
    """
    start = os.path.realpath(start)
    if git_dir:
        path = os.path.realpath(os.path.join(start, git_dir))
        found = _git_dir_at(path)
        if found is None:
            raise _no_repository(f"GIT_DIR is not a git repository: {path}")
        top = _top_of(found, start)
    else:
        found, top = _search(start, named=named)
    common = _common_of(found)
    if common_dir:
        common = os.path.realpath(os.path.join(start, common_dir))
        if not os.path.isdir(os.path.join(common, "objects")):
            raise _no_repository(f"GIT_COMMON_DIR is not a git repository: {common}")
    if work_tree:
        top = os.path.realpath(os.path.join(start, work_tree))
    elif common == found:  # as in git, linked worktrees ignore core.bare and core.worktree
        top = _configured_top(found, top)
    return Repo(common, found, top, by_folder=not git_dir and found == start)


def tree_of(git_dir: str, common: str) -> str:
    """Return what tells a worktree from every other one of its clone; "" if it is gone.

    It is the name of its git folder and, of a linked one, when git made that: it stays the same when the worktree is moved, and
    another worktree that is made at its path later has another one.
    """
    name = os.path.basename(git_dir)
    if git_dir == common:
        return name
    try:
        return f"{name} {os.stat(os.path.join(git_dir, 'commondir')).st_mtime_ns}"
    except OSError:
        return ""


def tree_at(folder: str) -> str:
    """Return the same of the worktree with this top folder; "" if there is none."""
    git_dir = _git_dir_at(os.path.join(folder, ".git"))
    return tree_of(git_dir, _common_of(git_dir)) if git_dir is not None else ""


def is_gone(tree: str, common: str) -> bool:
    """Return whether a worktree of a clone, as `tree_of` names it, was removed or pruned."""
    name, _, made = tree.rpartition(" ")
    return bool(name and made) and tree_of(os.path.join(common, "worktrees", name), common) != tree


def reject_unsupported(repo: Repo) -> None:
    """Reject repositories in which the log would not be safe, or whose extensions gitmem does not know.

    Raises:
        StoreError: `unsupported-repository`, with a message that names the kind.
    """
    if os.path.islink(repo.state):
        raise _unsupported(
            f"a repository whose state folder is a link: {repo.state}",
            "Others may have made it. Remove the link, not what it leads to; if you have moved the folder, move it back.",
        )
    config = read_small(os.path.join(repo.common, "config"))
    lowered = config.lower()
    if any(word in lowered for word in _SUSPICIOUS):
        _refuse_odd_config(config)


def _refuse_odd_config(config: bytes) -> None:
    for key, value in read_config(config):
        section, _, last = key.rpartition(".")
        on = value.lower() not in ("", "false", "no", "off", "0")
        if section == "extensions":
            known = _EXTENSIONS.get(last)
            if known is None or (known and value.lower() not in known):
                raise _unsupported(f"a repository with {key} = {value}", "Use a repository without it.")
        if not section.startswith("remote."):
            continue
        if (last == "mirror" and on) or (last == "fetch" and _covers_ours(value)):
            raise _unsupported(
                "a mirror clone, whose next fetch would delete gitmem's refs",
                f"Use a regular clone, or narrow the config value {key}.",
            )


def _covers_ours(refspec: str) -> bool:
    """Return whether a fetch refspec writes below refs/gitmem/, where a prune would delete the log."""
    _, colon, destination = refspec.partition(":")
    if not colon or refspec.startswith("^"):
        return False
    before, star, _ = destination.partition("*")
    if not star:
        return destination.startswith("refs/gitmem/")
    return before.startswith("refs/gitmem/") or "refs/gitmem/".startswith(before)


def read_config(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of one git config file, in order, without its includes.

    The section and the last part of a key are lower-case, as git prints them. A key without `=` has the value `true`.
    Syntax errors are skipped.
    """
    lines = iter(data.decode("utf-8", "surrogateescape").lstrip("\ufeff").splitlines())
    section = ""
    for line in lines:
        rest = line.strip()
        if rest.startswith("["):
            section, rest = _section(rest)
        if not rest or rest[0] in "#;" or not section:
            continue
        name, equals, value = rest.partition("=")
        if not equals:
            yield f"{section}.{name.split('#')[0].split(';')[0].strip().lower()}", "true"
            continue
        yield f"{section}.{name.strip().lower()}", _value(value, lines)


def _section(line: str) -> tuple[str, str]:
    """Return the section that a header opens (empty if invalid), and the rest of its line."""
    name = line[1:]
    quote = name.find('"')
    end = name.find("]")
    if quote == -1 or -1 < end < quote:
        return (name[:end].strip().lower(), name[end + 1 :].strip()) if end != -1 else ("", "")
    head, name, sub = name[:quote], name[quote + 1 :], ""
    while name and name[0] != '"':
        if name[0] == "\\":
            name = name[1:]
        sub, name = sub + name[:1], name[1:]
    if not name.startswith('"]'):
        return "", ""
    return f"{head.strip().lower()}.{sub}", name[2:].strip()


def _value(raw: str, more: Iterator[str]) -> str:
    """Return a value with quotes, escapes, comments and continued lines resolved."""
    kept, spaces, quoted, at = "", "", False, 0
    while at < len(raw):
        char = raw[at]
        at += 1
        if char == "\\":
            if at == len(raw):
                raw, at = next(more, ""), 0
                continue
            char = _ESCAPES.get(raw[at], raw[at])
            at += 1
        elif char == '"':
            quoted = not quoted
            continue
        elif not quoted and char in "#;":
            break
        elif not quoted and char.isspace():
            spaces += char if kept else ""
            continue
        kept, spaces = kept + spaces + char, ""
    return kept


def _search(start: str, *, named: bool) -> tuple[str, str | None]:
    folder = start
    while True:
        inside = os.path.join(folder, ".git")
        if os.path.lexists(inside):
            found = _git_dir_at(inside)
            if found is not None:
                return found, folder
            if not os.path.isdir(inside):
                raise _no_worktree(inside)
        above = os.path.dirname(folder)
        is_top = above == folder
        if (is_top or (named and folder == start)) and _is_git_dir(start):
            return start, _top_of(start, None)
        if is_top:
            raise _no_repository(f"Not a git repository: {start}")
        folder = above


def _git_dir_at(path: str) -> str | None:
    """Return the git folder at a path, or the one that the `.git` file there names."""
    if os.path.isfile(path):
        text = read_small(path)
        if not text.startswith(b"gitdir: "):
            return None
        named = os.fsdecode(text[len(b"gitdir: ") :].rstrip(b"\r\n"))
        path = os.path.join(os.path.dirname(path), named)
    path = os.path.realpath(path)
    return path if _is_git_dir(path) else None


def _is_git_dir(path: str) -> bool:
    if not os.path.lexists(os.path.join(path, "HEAD")):
        return False
    common = _common_of(path)
    return os.path.isdir(os.path.join(common, "objects")) and os.path.isdir(os.path.join(common, "refs"))


def _common_of(git_dir: str) -> str:
    """Return the common folder; a linked worktree's git folder names it in its file `commondir`."""
    named = os.fsdecode(read_small(os.path.join(git_dir, "commondir")).rstrip(b"\r\n"))
    return os.path.realpath(os.path.join(git_dir, named)) if named else git_dir


def _top_of(git_dir: str, start: str | None) -> str | None:
    """Return the worktree of a git folder: the parent of a `.git`, or a linked worktree.

    For other folders return `start`, as git uses the current folder if only GIT_DIR is set.
    """
    back = os.fsdecode(read_small(os.path.join(git_dir, "gitdir")).rstrip(b"\r\n"))
    if back and _common_of(git_dir) != git_dir:
        return os.path.dirname(os.path.realpath(os.path.join(git_dir, back)))
    if os.path.basename(git_dir) == ".git":
        top = os.path.dirname(git_dir)
        if start is None or start == top or start.startswith(os.path.join(top, "")):
            return top
    return start


def _configured_top(git_dir: str, top: str | None) -> str | None:
    """Return the worktree after applying core.bare and core.worktree; not for linked worktrees."""
    config = read_small(os.path.join(git_dir, "config"))
    if b"worktreeconfig" in config.lower():
        config += b"\n" + read_small(os.path.join(git_dir, "config.worktree"))
    values = {key: value for key, value in read_config(config) if key.startswith("core.")}
    if "core.worktree" in values:
        return os.path.realpath(os.path.join(git_dir, values["core.worktree"]))
    return None if values.get("core.bare", "false").lower() in ("true", "yes", "on", "1") else top


def read_small(path: str, most: int = -1) -> bytes:
    """Return the content of a small file, at most so many bytes; empty if it is missing, unreadable or no regular file."""
    try:
        with open(os.open(path, READING), "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


def _no_repository(what: str) -> UsageError:
    return UsageError(
        f"{what}. Nothing was read or written.",
        hint="Run the command inside a repository, or name one with -C DIR.",
        code="not-a-repository",
        next=["git init"],
    )


def _no_worktree(inside: str) -> UsageError:
    """Return the error for a `.git` file that names no git folder, such as that of a worktree that was removed or pruned."""
    error = _no_repository(f"{inside} does not point to a git repository")
    named = os.fsdecode(read_small(inside, 4096).removeprefix(b"gitdir: ").rstrip(b"\r\n"))
    git_dir = os.path.join(os.path.dirname(inside), named)
    common = os.path.dirname(os.path.dirname(git_dir))
    if os.path.basename(os.path.dirname(git_dir)) == "worktrees" and _is_git_dir(common):
        from .outcome import command

        what = "damaged (HEAD or commondir)" if os.path.isdir(git_dir) else "gone (removed or pruned)"
        error.message = f"This worktree's git folder is {what}: {git_dir}. Nothing was read or written."
        error.hint = "Its files are still here, and gitmem's log is whole in the main worktree. `git worktree add` makes a new worktree."
        main = os.path.dirname(common) if os.path.basename(common) == ".git" else common
        error.next = [command("gitmem", "-C", main, "roster")]
    return error


def _unsupported(kind: str, hint: str) -> StoreError:
    return StoreError(
        f"This is {kind}; gitmem cannot store a log in it. Nothing was written.",
        hint=hint,
        code="unsupported-repository",
    )
