"""The spool: accepted entries that are not in a commit yet, one fsynced file each.

A file's name carries the segment that its lines go to: whoever commits it
writes to just that segment, so that a file that is committed twice (a crash
between swap and removal) adds nothing the second time.
"""

from __future__ import annotations

import os

from .. import shared_mode
from ..errors import StoreError
from . import lines
from .spool_files import fsync_folder, is_private, take_lock, withdraw
from .spool_files import remove as remove
from .spool_files import take_back as take_back

try:
    # The json package would cost a read a third of an empty Python (it imports re).
    from _json import encode_basestring as _quote
except ImportError:  # not CPython
    from json.encoder import encode_basestring as _quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .lock import Lock
    from .spool_owner import Owner

DONE_KEPT_SECONDS = 600


class Story:
    """What the commit of an entry tells: author as `Name <mail>`, subject, body, trailers in order."""

    __slots__ = ("author", "body", "subject", "trailers")

    def __init__(
        self, author: str, subject: str, body: str = "", trailers: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.author = author
        self.subject = subject
        self.body = body
        self.trailers = [(str(key), str(value)) for key, value in trailers]


class Entry:
    """Lines that are accepted together, each with its stream. A riding entry waits for the next commit."""

    __slots__ = ("lines", "rides", "story", "token")

    def __init__(
        self, lines: Sequence[tuple[str, bytes]], story: Story, *, rides: bool = False, token: str = ""
    ) -> None:
        self.lines = list(lines)
        self.story = story
        self.rides = rides
        self.token = token

    def encode(self) -> bytes:
        story = self.story
        words = ", ".join(map(_quote, (story.author, story.subject, story.body)))
        trailers = ", ".join(f"[{_quote(key)}, {_quote(value)}]" for key, value in story.trailers)
        parts = [f"[{words}, [{trailers}]]".encode("utf-8", "replace")]
        parts += [stream.encode() + b"\t" + line for stream, line in self.lines]
        return b"\n".join(parts) + b"\n"

    @classmethod
    def decode(cls, name: str, content: bytes) -> Entry:
        """ValueError where the file is not one of ours: the log takes nothing on trust."""
        from ..strict_json import read

        token, rides = parse_name(name)
        if not content.endswith(b"\n"):
            raise ValueError("torn")
        head, *rest = content[:-1].split(b"\n")
        try:
            author, subject, body, trailers = read(head.decode())
            story = Story(str(author), str(subject), str(body), trailers)
        except (TypeError, RecursionError) as error:
            raise ValueError("no story") from error
        found = []
        for item in rest:
            stream, tab, line = item.partition(b"\t")
            if not tab or not is_name(stream.decode("ascii")):
                raise ValueError("no stream")
            problem = lines.problem(line)
            if problem:
                raise ValueError(problem)
            found.append((stream.decode("ascii"), line))
        return cls(found, story, rides=rides, token=token)


def is_name(text: str) -> bool:
    """Whether a stream or token is safe as a path component, and none of the tree's fixed names."""
    return (
        bool(text)
        and text not in ("format", "projects")
        and len(text) <= 64
        and text.isascii()
        and text.isalnum()
        and text == text.lower()
    )


def parse_name(name: str) -> tuple[str, bool]:
    """The token in a spool file's name, and whether the entry rides. ValueError for a foreign file."""
    parts = name.split("-")
    if len(parts) != 4 or parts[3] not in ("wait.spool", "ride.spool") or not is_name(parts[2]):
        raise ValueError(f"{name!r} is not a spool file")
    return parts[2], parts[3] == "ride.spool"


class Spool:
    """One spool folder.

    Args:
        check_owner: It lies in a shared place, so it and its files must be this user's alone.
        owner: The repository whose lines it must hold, where that is not plain from where it is.
    """

    def __init__(
        self,
        folder: str,
        random: Callable[[int], bytes],
        *,
        check_owner: bool = False,
        owner: Owner | None = None,
    ) -> None:
        self.folder = folder
        self.random = random
        self.check_owner = check_owner
        self.owner = owner

    def put(
        self,
        entry: Entry,
        at: int,
        lock: Callable[[], Lock] | None = None,
        is_committed: Callable[[], bool] = bool,
    ) -> str:
        """Write an entry so that it survives a crash; its file name.

        Args:
            lock: Gives the lock of whoever commits: what a leader may have read by now is withdrawn under it alone.
            is_committed: Whether a leader has committed it: then it is not withdrawn. Asked under the lock.

        Raises: StoreError where it can't be written; then nothing of it is left.
        """
        name = f"{at:017d}-{self.random(5).hex()}-{entry.token}-{'ride' if entry.rides else 'wait'}.spool"
        path = os.path.join(self.folder, name)
        temporary = os.path.join(self.folder, f"tmp-{name}")
        seen = False
        try:
            self._make_folder()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            fd = shared_mode.open_file(temporary, flags, 0o600 if self.check_owner else 0o666)
            try:
                content = entry.encode()
                while content:
                    content = content[os.write(fd, content) :]
                os.fsync(fd)
            finally:
                os.close(fd)
            self._accept(temporary, path)
            seen = True
            fsync_folder(self.folder)
        except OSError as error:
            if seen and not withdraw(path, lock, is_committed):
                return name
            if not seen:
                remove(temporary)
            raise StoreError(
                f"The spool {self.folder} cannot be written ({error.strerror}); nothing was recorded.",
                hint="Free the disk or mend the permissions, then run the command again.",
                code="spool",
            ) from error
        return name

    def _done(self, name: str) -> str:
        return os.path.join(self.folder, "done", name)

    def _make_folder(self) -> None:
        if self.check_owner:
            os.makedirs(os.path.dirname(os.path.dirname(self.folder)), exist_ok=True)
            for folder in (os.path.dirname(self.folder), self.folder):
                try:
                    os.mkdir(folder, 0o700)
                except FileExistsError:
                    pass
                if not is_private(folder):  # before anything is made inside of it
                    raise PermissionError(1, "it belongs to somebody else or is a link")
        else:
            shared_mode.make_dirs(self.folder)

    def _accept(self, temporary: str, path: str) -> None:
        """Give an entry its name, in a folder whose mark says that it is of this repository.

        Another repository at this path may look at the same folder (two containers with one state folder), so the mark
        is read and the name given under a lock. The mark is on the disk before any line is.

        Raises: OSError.
        """
        if self.owner is None:
            os.rename(temporary, path)
            return
        with take_lock(self.folder):
            if not self.owner.matches(self.folder):
                if self._listed():
                    raise PermissionError(1, "lines of another repository wait in it")
                self.owner.mark(self.folder)
            os.rename(temporary, path)

    def is_ours(self) -> bool:
        """Whether nobody else could have put files here: own uid, mode 0700, no links."""
        return is_private(os.path.dirname(self.folder)) and is_private(self.folder)

    def is_strange(self) -> bool:
        """Return whether lines wait here that are of another repository: nothing is read or committed of them."""
        return bool(self.owner and self._listed() and self.is_ours() and not self.owner.matches(self.folder))

    def names(self) -> list[str]:
        """The spool files that are here now, oldest first."""
        found = self._listed()
        if self.check_owner and found and not self.is_ours():
            return []
        if self.owner is not None and found and not self.owner.matches(self.folder):
            return []
        return found

    def _listed(self) -> list[str]:
        try:
            found = os.listdir(self.folder)
        except OSError:
            return []
        return sorted(name for name in found if name.endswith(".spool") and not name.startswith("tmp-"))

    def read(self, name: str) -> Entry:
        """ValueError where the file is not one of ours, OSError where it is gone."""
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        fd = os.open(os.path.join(self.folder, name), flags)
        with open(fd, "rb") as file:
            if self.check_owner and hasattr(os, "getuid") and os.fstat(fd).st_uid != os.getuid():
                raise ValueError("it belongs to somebody else")
            return Entry.decode(name, file.read())

    def finish(self, name: str, commit: str, *, tell: bool) -> None:
        """Remove a committed file; where a writer may wait for it, leave the commit that it went into."""
        if tell:
            done = os.path.join(self.folder, "done")
            shared_mode.make_dirs(done)
            temporary = os.path.join(done, f"tmp-{name}")
            handle = shared_mode.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with open(handle, "w") as file:
                file.write(commit)
            os.replace(temporary, os.path.join(done, name))
        try:
            os.unlink(os.path.join(self.folder, name))
        except FileNotFoundError:
            pass

    def take_done(self, name: str) -> str | None:
        """The commit that our file went into, once it is there."""
        path = self._done(name)
        try:
            with open(path) as file:
                commit = file.read()
            os.unlink(path)
        except OSError:
            return None
        return commit

    def sweep(self, now_seconds: float) -> None:
        """Remove what crashed writers left: answers nobody fetched, files that were never accepted."""
        for folder, prefix in ((os.path.join(self.folder, "done"), ""), (self.folder, "tmp-")):
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            for name in names:
                path = os.path.join(folder, name)
                try:
                    left = name.startswith(prefix) and name.endswith(".spool")
                    if left and os.stat(path).st_mtime < now_seconds - DONE_KEPT_SECONDS:
                        os.unlink(path)
                except OSError:
                    continue
