"""The key of a writer: which one writes in a clone, and what a writer is called.

A writer is a user and a project: its key is a file in the user's own folder, outside of the clone, so that all clones and
worktrees of the user are one writer, and a copied clone copies no key. `docs/local-state.md`, "Keys of writers", defines the files.
A note in the state folder has the writer's id, so that everyday commands need neither the key nor the package `cryptography`.

The clone key is another one: `<state>/key` holds 32 random bytes by which this clone hides the ids of its clients, shared by all worktrees.
It is never replaced automatically: with another key, clients would not find their sessions.
"""

from __future__ import annotations

import errno
import os

from .. import local_files
from ..errors import StoreError, UsageError
from ..outcome import Outcome, Struct, command
from ..text.addresses import WRITER_CHARACTERS
from ..text.digests import ALPHABET, Mac, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

SEED_BYTES = 32
NAME = "key"  # of the clone key, and of a key beside records that wait outside of the clone
_START = b"gitmem-key ed25519 "
_CLONE = "clone-"  # begins the name of the key of a clone without a commit
_KEY_FILE_BYTES = len(_START) + 2 * SEED_BYTES + 1
_FORM = f"one line with `{_START.decode()}` and {2 * SEED_BYTES} lower-case hexadecimal digits"
ROWS_MAX = 32  # of a note; the newest stay
_NOTE_BYTES_MAX = ROWS_MAX * (WRITER_CHARACTERS + 4098)
_WRITABLE_BY_OTHERS = 0o022
SHARED_MODES = 0o077
# Errors of a file system without hard links.
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK)
_FAILING_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_RESTORE = "Restore it from a backup, or name another one with GITMEM_KEY_FILE or `git config --global gitmem.key PATH`"


def is_writer(text: str) -> bool:
    """Return whether a text has the form of a writer's id."""
    return len(text) == WRITER_CHARACTERS and not text.strip(ALPHABET)


class SigningKey(Struct):
    """A private key.

    Attributes:
        writer: The id of its writer.
        public: The public key.
    """

    writer: str
    public: bytes
    _seed: bytes

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        from ..text import ed25519

        return ed25519.sign(self._seed, message)

    def __repr__(self) -> str:
        return f"SigningKey({self.writer!r})"  # never the seed


class KeyFile(Struct):
    """The content and the state of a key file.

    Attributes:
        path: Its path.
        damage: Why it must not be used, and what is valid, without a full stop; "" if it is usable.
        is_missing: Whether the file does not exist.
        is_exposed: Whether others than its owner may read or change it.
    """

    path: str
    _seed: bytes = b""
    damage: str = ""
    is_missing: bool = False
    is_exposed: bool = False

    def key(self) -> SigningKey | None:
        """Return the key; None if the file is missing or damaged."""
        if not self._seed:
            return None
        from ..log.attestations import writer_id
        from ..text import ed25519

        public = ed25519.public_of(self._seed)
        return SigningKey(writer_id(public), public, self._seed)

    def __repr__(self) -> str:
        return f"KeyFile({self.path!r})"


class Keys(Struct):
    """Which key writes in a clone, for the user of this process.

    Attributes:
        state: The state folder of the clone.
        folder: The user's own folder for keys; "" if there is none.
        given: The absolute path of the key file that the user has chosen; "" for the usual one.
        project: Returns the project id, the clone's lowest root commit; "" before the first commit.
        clone: Returns the id of the clone.
        random: Returns secure random bytes.
        make_state: Creates the state folder; returns False if this process may not write to it.
        machine: The name of this machine.
        elsewhere: Folders where this process leaves records if it may not write to the clone; the last places for a key.
        read: Such folders of other processes, whose keys are found.
        chosen: Returns the key file that the user's git configuration names; "" if none. Commands that find a note of their writer do
            not call it, because reading git's configuration takes time; committers do.
    """

    state: str
    folder: str
    given: str
    project: Callable[[], str]
    clone: Callable[[], str]
    random: Callable[[int], bytes]
    make_state: Callable[[], bool]
    machine: str
    elsewhere: Sequence[str] = ()
    read: Sequence[str] = ()
    chosen: Callable[[], str] = str
    _writer: str = ""
    _path: str = ""

    def writer(self) -> str:
        """Return the writer id of the lines that this process makes; at the first time its key is made and noted.

        Raises:
            StoreError: `key-file`: the key file is damaged, the chosen or noted one missing, or the disk failing; `no-key`: there is
                no place for a key.
        """
        if not self._writer:
            self._writer, self._path = self._noted()
        if not self._writer:
            self._use(self._in_force())
        elif _is_seen_missing(self._path):
            self._use(self._moved())
        return self._writer

    def _use(self, found: KeyFile) -> None:
        self._writer, self._path = self._note(found), found.path

    def _moved(self) -> KeyFile:
        """Return the key file of the noted writer, which is not in its place any more.

        Raises:
            StoreError: `key-file`: it is in no other place; nobody else would ever see what is recorded.
        """
        found = None if self.given else self.file_of(self._writer)
        if found is not None:
            return found
        raise self._unusable(
            f"that of the writer {self._writer} is missing: {self._path}",
            f"{_RESTORE}. {_named_hint(self.given) if self.given else 'If it is lost, `gitmem doctor` says how to go on under another key.'}",
        )

    def _name_after_project(self, path: str) -> None:
        """Let the key of a clone that had no commit be that of its project, for the user's other clones, once it has one."""
        project = self.project()
        if not project:
            return
        try:
            os.link(path, os.path.join(self.folder, project))
        except OSError:
            return  # another clone has made a key for the project
        self._note(read(os.path.join(self.folder, project)))

    def known(self) -> str:
        """Return the writer id if there is a key that can be used, else ""; it makes none."""
        if not self._writer:
            self._writer, self._path = self._noted()
            found = None if self._writer else self._existing(self.given or self.chosen())
            if found is not None and not (found.is_missing or found.damage):
                self._use(found)
        return self._writer

    def renew(self) -> str:
        """Note the usual key in place of one that is missing, make it if there is none, and return its writer id.

        What the old one made stays noted.

        Raises:
            StoreError: As `writer`.
        """
        self._use(self._in_force())
        return self._writer

    def usual(self) -> KeyFile | None:
        """Return the first key file in the usual places, also a damaged one; None if there is none."""
        return self._existing("")

    def choose(self) -> None:
        """Note the key file that the configuration names now, or the usual one if it names none any more."""
        writer, path = self._noted()
        if self.given or not writer:
            return
        if os.path.basename(path).startswith(_CLONE) and os.path.dirname(path) == self.folder:
            self._name_after_project(path)
            path = self._noted()[1]
        chosen, usual = self.chosen(), (self.folder, self.state, *self._asides(), *self.elsewhere, *self.read)
        if path == chosen or (not chosen and os.path.dirname(path) in usual):
            return
        for place in [chosen] if chosen else self._places():
            found = read(place)
            if not (found.is_missing or found.damage):
                self._note(found)
                return

    def find(self, writer: str) -> SigningKey | None:
        """Return the key of a writer that is this user on this machine; None if no key file here makes its id."""
        found = self.file_of(writer)
        return found.key() if found is not None else None

    def file_of(self, writer: str) -> KeyFile | None:
        """Return the key file of a writer that is this user on this machine; None if no key file here makes its id."""
        named = {self.given, *(path for _, path in all_noted(self.state, "given"))}
        for path in self._candidates(writer):
            if _makes(found := read(path, is_named=path in named), writer):
                return found
        return None

    def problem(self) -> str:
        """Return what is wrong with the key that writes here, and what is valid, as a sentence; "" if it is fine."""
        noted, path = self._noted()
        found = (
            read(path, is_named=path == self.given) if noted else self._existing(self.given or self.chosen())
        )
        if found is None:
            return ""  # none was needed yet
        if noted and not self.given and not _makes(found, noted):
            found = self.file_of(noted) or found
        if found.is_missing:
            whose = f" of the writer {noted}" if noted else ""
            hint = "" if noted and not self.given else f" {_named_hint(found.path)}"
            return f"The key file{whose} is missing: {found.path}; it must be there to sign what is written here.{hint}"
        if found.damage:
            return f"Cannot use the key file: {found.damage}."
        key = found.key() if noted else None
        if key is not None and key.writer != noted:
            return f"The key file makes another writer: {found.path} is the key of {key.writer}; it must be that of {noted}."
        if found.is_exposed:
            close = command("chmod", "600", found.path)
            return (
                f"Others may read or change the key file: {found.path}; only its owner may, as with {close}."
            )
        chosen = self._existing(self.chosen()) if noted and not self.given and self.chosen() else None
        if chosen is not None and chosen.is_missing:
            return f"gitmem.key names a file that is missing: {chosen.path}; it must name a key file. {_named_hint(chosen.path)}"
        if chosen is not None and chosen.damage:
            return f"Cannot use the key file that gitmem.key names: {chosen.damage}."
        return ""

    def refusal(self) -> str:
        """Return what `problem` does if there is no key to write with, as far as is known without reading a noted one; else ""."""
        noted, path = self._noted()
        return self.problem() if not noted or _is_seen_missing(path) else ""

    def describe(self) -> tuple[str, str]:
        """Return the id of the writer and the path of its key file; "" for what does not exist yet. It makes nothing."""
        noted, path = self._noted()
        if noted:
            return noted, path
        found = self._existing(self.given or self.chosen())
        key = found.key() if found else None
        return (key.writer if key else ""), (found.path if found else "")

    def _note_path(self) -> str:
        what = "given" if self.given else "writer"
        return os.path.join(self.state, f"{what}-{os.geteuid()}-{local_files.machine_part(self.machine)}")

    def _noted(self) -> tuple[str, str]:
        """Return writer id and path of the key in force as they are noted; two empty texts if they are not."""
        rows = [row for row in _rows(self._note_path()) if self.given in ("", row[1])]
        return rows[-1] if rows else ("", "")

    def _note(self, found: KeyFile) -> str:
        """Return the writer id of a usable key file, and note it if this process may write to the state folder."""
        key = found.key()
        assert key is not None
        if self.make_state() and "\n" not in found.path:
            path = self._note_path()
            kept = [row for row in _rows(path) if row != (key.writer, found.path)]
            rows = [*kept[1 - ROWS_MAX :], (key.writer, found.path)]
            content = "".join(f"{writer} {of}\n" for writer, of in rows)
            local_files.try_replace(path, os.fsencode(content), private=local_files.OWN)
        return key.writer

    def _in_force(self) -> KeyFile:
        """Return the usable key file that is in force; make it if the user has chosen none and there is none."""
        wanted = self.given or self.chosen()
        found = self._existing(wanted)
        if found is not None and found.damage:
            raise self._unusable(found.damage)
        if found is not None and not found.is_missing:
            return found
        if wanted:
            raise self._unusable(
                f"there is no file {wanted}; GITMEM_KEY_FILE or gitmem.key must name a key file",
                f"{_RESTORE}. {_named_hint(wanted)}",
            )
        for path in self._places():
            found = self._made(path)
            if found is not None and found.damage:
                raise self._unusable(found.damage)
            if found is not None:
                return found
        raise StoreError(
            f"There is no place for a key: this process may write neither to {self.folder or 'a folder for keys'} nor to "
            f"{self.state}. Nothing was written.",
            hint="Name a key file with GITMEM_KEY_FILE or `git config --global gitmem.key PATH`, or correct the permissions.",
            code="no-key",
            next=["gitmem doctor"],
        )

    def _existing(self, wanted: str) -> KeyFile | None:
        """Return the key file that the user has chosen, else the first that there is, also a damaged one."""
        if wanted and (not os.path.isabs(wanted) or "\n" in wanted):
            return KeyFile(wanted, damage=f"its path is {wanted!a}; it must be absolute, in one line")
        for path in [wanted] if wanted else self._places():
            found = read(path, is_named=path == self.given)
            if wanted or not found.is_missing:
                return found
        return None

    def _places(self) -> list[str]:
        """Return the paths that the key may have if the user has chosen none, the best first."""
        own = [os.path.join(self.state, f"writer-{os.geteuid()}.key"), *_in(self.elsewhere)]
        if not self.folder or not _may_have_keys(self.folder):
            return own
        return [os.path.join(self.folder, self.project() or _CLONE + self.clone()), *own]

    def _made(self, path: str) -> KeyFile | None:
        """Make a key file, unless another process does; return what is there then, None if this process may not write there."""
        folder = os.path.dirname(path)
        content = content_of(self.random(SEED_BYTES))
        try:
            if folder != self.state:
                _make_private(folder)
            if not (self.make_state() if folder == self.state else self._is_safe(folder)):
                return None
            create_once(path, content, 0o600, self.random, private=local_files.OWN)
        except OSError as error:
            if error.errno in _FAILING_DISK:
                raise self._unusable(
                    f"cannot make {path} ({error.strerror}); the disk must have room for it"
                ) from None
            return None
        return read(path)

    def _unusable(self, damage: str, hint: str = "") -> StoreError:
        what = f"Cannot use the key file: {damage}. Nothing was written."
        return _damaged(self.state, what, hint or f"{_RESTORE}.", "key-file")

    def _is_safe(self, folder: str) -> bool:
        """Return whether nobody else can replace what is in a folder; that of the user is taken as it is."""
        from ..log.write_ahead import is_private

        return folder not in self.elsewhere or (is_private(os.path.dirname(folder)) and is_private(folder))

    def _candidates(self, writer: str) -> Iterator[str]:
        """Yield the paths of the files that may have the key of a writer, those noted for it first."""
        paths = [path for _, path in sorted(all_noted(self.state), key=lambda row: row[0] != writer)]
        paths += [self.given] if self.given else []
        paths += [*self._places(), *_in(self.read)]
        if self.folder:
            paths += [os.path.join(self.folder, name) for name in sorted(local_files.names_in(self.folder))]
        for aside in self._asides():
            paths += [os.path.join(aside, name) for name in sorted(local_files.names_in(aside))]
        yield from dict.fromkeys(paths)

    def _asides(self) -> list[str]:
        """Return the folders to which doctor moves files of this user."""
        return [os.path.join(each, local_files.ASIDE) for each in (self.folder, self.state) if each]


def _in(folders: Iterable[str]) -> list[str]:
    return [os.path.join(folder, NAME) for folder in folders]


def all_noted(state: str, *whats: str) -> list[tuple[str, str]]:
    """Return writer id and path of every key of this user that is noted in a state folder, or in notes of some kinds."""
    mine = tuple(f"{what}-{os.geteuid()}-" for what in whats or ("writer", "given"))
    notes = [name for name in local_files.names_in(state) if name.startswith(mine)]
    return [row for name in sorted(notes) for row in _rows(os.path.join(state, name))]


def content_of(seed: bytes) -> bytes:
    """Return the content of the key file of a seed."""
    return _START + seed.hex().encode() + b"\n"


def _makes(found: KeyFile, writer: str) -> bool:
    """Return whether a key file can be used and makes a writer."""
    key = found.key()
    return key is not None and key.writer == writer


def _is_seen_missing(path: str) -> bool:
    """Return whether a file is not there, to a process that may list its folder. A sandbox that hides the folder does not know."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.isdir(os.path.dirname(path)) and os.access(os.path.dirname(path), os.R_OK | os.X_OK)
    except OSError:
        return False
    return False


def _named_hint(path: str) -> str:
    return f"{command('gitmem', 'trust', '--make-key', path)} makes one."


def read(path: str, *, is_named: bool = False) -> KeyFile:
    """Return a key file. It writes nothing and raises no error.

    Args:
        path: Its path.
        is_named: Whether the environment of the user names it: it may be a link of the user or root, and root's own file,
            as secrets are mounted in containers, if nobody else may write it.
    """
    found = KeyFile(path)
    users = (os.geteuid(), 0) if is_named else (os.geteuid(),)
    try:
        is_link = is_named and os.path.islink(path)
        if is_link and os.lstat(path).st_uid not in users:
            found.damage = f"{path} is a link of user {os.lstat(path).st_uid}; it must belong to user {os.geteuid()} or root"
            return found
        descriptor = local_files.open_file(os.path.realpath(path) if is_link else path, os.O_RDONLY)
    except OSError as error:
        if isinstance(error, (FileNotFoundError, NotADirectoryError)) or not os.path.lexists(path):
            found.is_missing = True
        elif error.strerror == local_files.OTHER_KIND:
            found.damage = f"{path} is a link, a pipe or a folder; it must be a regular file"
        else:
            found.damage = f"cannot open {path} ({error.strerror}); its owner must be able to read it"
        return found
    try:
        status = os.fstat(descriptor)
        content = os.read(descriptor, _KEY_FILE_BYTES + 1)
    except OSError as error:
        found.damage = f"cannot read {path} ({error.strerror}); it must be {_FORM}"
        return found
    finally:
        os.close(descriptor)
    digits = content.removesuffix(b"\n")[len(_START) :]  # secrets of a CI end without it
    if status.st_uid not in users:
        found.damage = f"{path} belongs to user {status.st_uid}; it must belong to user {os.geteuid()}"
    elif status.st_uid != os.geteuid() and status.st_mode & _WRITABLE_BY_OTHERS:
        found.damage = f"{path} belongs to root, and others may write it; it must be writable by root alone"
    elif not content:
        found.damage = f"{path} is empty; it must be {_FORM}"
    elif not content.startswith(_START) or len(digits) != 2 * SEED_BYTES or digits.strip(b"0123456789abcdef"):
        found.damage = f"{path} has other content than a key; it must be {_FORM}"
    else:
        found._seed = bytes.fromhex(digits.decode())
        found.is_exposed = status.st_uid == os.geteuid() and bool(status.st_mode & SHARED_MODES)
    return found


def _rows(path: str) -> list[tuple[str, str]]:
    """Return writer id and path of each row of a note; none if others than this user could have written it."""
    try:
        handle = local_files.open_file(path, os.O_RDONLY)
    except OSError:
        return []
    try:
        status = os.fstat(handle)
        content = os.read(handle, _NOTE_BYTES_MAX + 1)
    except OSError:
        return []
    finally:
        os.close(handle)
    if (
        status.st_uid != os.geteuid()
        or status.st_mode & _WRITABLE_BY_OTHERS
        or len(content) > _NOTE_BYTES_MAX
    ):
        return []
    rows = [os.fsdecode(row).partition(" ") for row in content.split(b"\n")[:-1]]
    return [(writer, of) for writer, _, of in rows if is_writer(writer) and of.startswith("/")]


def _may_have_keys(folder: str) -> bool:
    """Return whether a folder for keys is this user's: root makes none in the home of another user, who could not use it then."""
    if os.geteuid():
        return True
    while not os.path.exists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.stat(folder).st_uid == 0


def _make_private(folder: str) -> None:
    """Create a folder that only this user may enter, its parent likewise, and their missing parents.

    The parent also has write-ahead logs, which are read only in a folder that is this user's alone.
    """
    parent = os.path.dirname(folder)
    if not os.path.isdir(folder):
        local_files.make_dirs(os.path.dirname(parent))
    for each in (parent, folder):
        os.makedirs(each, 0o700, exist_ok=True)


def create_once(
    path: str, secret: bytes, mode: int, random: Callable[[int], bytes], *, private: bool | str = True
) -> None:
    """Create a file with a secret, on the disk before anything is written with it. A file that exists stays.

    If several processes create it at the same time, one wins, and all must read what is there then.

    Args:
        private: As for `local_files.adjust`.

    Raises:
        OSError: It can't be created.
    """
    temporary = f"{path}-{os.getpid()}-{random(4).hex()}"
    try:
        _write(temporary, secret, mode, private)
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise  # a full or failing disk: a truncated key would keep every command from writing
            try:
                _write(path, secret, mode, private)  # readers may see the file before its content
            except FileExistsError:
                pass
        local_files.fsync_dir(os.path.dirname(path))
    finally:
        local_files.remove_quietly(temporary)


def _write(path: str, secret: bytes, mode: int, private: bool | str) -> None:
    """Create a file that must not exist, readable by its owner, and sync it to the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(local_files.open_file(path, flags, 0o600, private=private), "wb", buffering=0) as file:
        os.fchmod(file.fileno(), mode)
        file.write(secret)
        os.fsync(file.fileno())


def _damaged(state: str, what: str, hint: str, code: str) -> StoreError:
    """Return the error for a key that can't be used, or for what root has left in the user's own git folder."""
    from ..git import plumbing

    return plumbing.left_by_another(os.path.dirname(state), "Nothing was written.") or StoreError(
        what, hint=hint, code=code, next=["gitmem doctor"]
    )


class MadeKey(Outcome, kw_only=True):
    """A key file that was made for use elsewhere.

    Attributes:
        writer: The id of its writer.
        key_file: Its absolute path.
        remark: How to use it.
    """

    writer: str
    key_file: str
    remark: str
    next: list[str] = []


def make_key_file(path: str, random: Callable[[int], bytes]) -> MadeKey:
    """Make a key file that only this user may read; one that exists is never replaced.

    Raises:
        UsageError: `key-exists`: something has this path.
        StoreError: `key-file`: the file can't be made there.
    """
    from ..text.sanitize import sanitize

    path = os.path.abspath(path)
    content = content_of(random(SEED_BYTES))
    try:
        create_once(path, content, 0o600, random, private=local_files.OWN)
    except OSError as error:
        raise StoreError(
            f"Cannot make {sanitize(path)}: {error.strerror}. Nothing was written.",
            hint="Name a path in a folder that exists and that you may write to.",
            code="key-file",
            next=["gitmem trust --help"],
        ) from None
    if local_files.read(path) != content:
        raise UsageError(
            f"There is a file {sanitize(path)} already; a key is never replaced. Nothing was written.",
            hint="Give the path of a file that does not exist yet.",
            code="key-exists",
        )
    key = read(path).key()
    assert key is not None
    used = command("env", f"GITMEM_KEY_FILE={path}", "gitmem", "whoami").split()[1]
    return MadeKey(
        writer=key.writer,
        key_file=path,
        remark=f"Commands with {used} write as {key.writer}. Give the file to a container or a CI as a secret, name its path there with "
        "GITMEM_KEY_FILE, and keep it out of every repository.",
        next=[command("gitmem", "trust", key.writer)],
    )


def choice_remarks(found: Keys, git_dir: str) -> list[str]:
    """Return sentences about a choice of a key that does not count, or does not yet.

    Args:
        found: Which key writes here.
        git_dir: The git folder of the worktree.
    """
    from ..text.sanitize import sanitize

    writer, chosen = found.describe()[0], found.chosen()
    key = read(chosen).key() if writer and chosen and not found.given else None
    told = [unheeded(git_dir)]
    if key is not None and key.writer != writer:
        told.insert(
            0,
            f"gitmem.key names {sanitize(chosen)}, the key of {key.writer}: it counts from the next commit on.",
        )
    return [each for each in told if each]


def unheeded(git_dir: str) -> str:
    """Return that a key file which the repository's own configuration names is not heeded; "" if it names none."""
    from ..git import config
    from ..text.sanitize import sanitize

    path = config.unheeded_key(git_dir)
    if not path:
        return ""
    return (
        f"gitmem.key in this repository's own configuration is not heeded: {sanitize(path)[:300]}; "
        "`git config --global gitmem.key PATH` or GITMEM_KEY_FILE is."
    )


CLONE_KEY_BYTES = 32
GROUP_MODES = 0o060  # allowed if the repository is shared with a group
HASH_PREFIX = "h-"


class CloneKey(Struct):
    """The content and the state of the file of the clone key.

    Attributes:
        path: The path of the file.
        mac: The key; None if this process has no usable one.
        damage: Why the file must not be used, as a sentence without its full stop; "" if it is usable.
        is_missing: Whether the file does not exist.
        is_exposed: Whether others than its owner may read it.
    """

    path: str
    mac: Mac | None = None
    damage: str = ""
    is_missing: bool = False
    is_exposed: bool = False

    @property
    def mode(self) -> int:
        """The mode that the file must have: the members of a group that shares the repository share the key, nobody else."""
        return 0o640 if self._is_shared else 0o600

    @property
    def _is_shared(self) -> bool:
        return bool(abs(local_files.setting(self.path)) & 0o040)

    def _take(self, state: str, handle: int) -> None:
        """Take the key from its open file, or note what is wrong with it."""
        status, secret, top = (
            os.fstat(handle),
            os.read(handle, CLONE_KEY_BYTES + 1),
            os.stat(os.path.dirname(state)),
        )
        is_groups = self._is_shared and status.st_gid == top.st_gid and not status.st_mode & 0o002
        if status.st_uid not in (os.geteuid(), top.st_uid) and not is_groups:
            self.damage = f"{self.path} is owned by user {status.st_uid}, who owns neither this process nor the git folder"
        elif len(secret) != CLONE_KEY_BYTES:
            size = f"more than {CLONE_KEY_BYTES}" if len(secret) > CLONE_KEY_BYTES else str(len(secret))
            self.damage = f"{self.path} has {size} bytes instead of {CLONE_KEY_BYTES}"
        else:
            self.mac = Mac(secret)
            allowed = GROUP_MODES if self._is_shared else 0
            self.is_exposed = bool(status.st_mode & SHARED_MODES & ~allowed)


class CloneKeyReader(Struct):
    """The key of one clone, read when it is first needed.

    Attributes:
        state: The state folder.
        random: Returns secure random bytes.
        make_state: Creates the state folder; returns False if this process may not write to it.
    """

    _state: str
    _random: Callable[[int], bytes]
    _make_state: Callable[[], bool]
    _key: CloneKey | None = None

    def now(self) -> CloneKey:
        """Return the key; if there was none, read again, because another process may have created it."""
        if self._key is None or self._key.mac is None:
            self._key = read_clone_key(self._state)
        return self._key

    def for_writing(self) -> Mac | None:
        """Return the key, creating it if it is missing; None if this process can't have it.

        Raises:
            StoreError: `clone-key`: the file is damaged; with a new key clients would not find their sessions.
        """
        found = self.now()
        if found.damage:
            raise _damaged(
                self._state,
                f"Cannot use the clone key: {found.damage}. Nothing was written.",
                f"Restore {found.path} from a backup, or create a new key with `gitmem doctor --fix`.",
                "clone-key",
            )
        if found.is_missing and self._make_state():
            try:
                create_once(found.path, self._random(CLONE_KEY_BYTES), found.mode, self._random)
            except OSError:
                pass  # a folder that can't be written has no key
            found = self._key = read_clone_key(self._state)
        return found.mac

    def forget(self) -> None:
        """Read the file again at the next use."""
        self._key = None

    def hashed(self, client_id: str, *, recorded: bool = True) -> str:
        """Return the published hash of a client's own session id.

        If no key can be created, the hash uses the folder's path instead: a random id can't be guessed from that hash.

        Args:
            recorded: Whether it will be recorded, and so must be the same from now on.
        """
        if recorded:
            self.for_writing()
        common = os.path.realpath(os.path.dirname(self._state))
        mac = self.now().mac or Mac(sha256(os.fsencode(common)).digest())
        return HASH_PREFIX + mac.of(client_id.encode("utf-8", "surrogateescape"))


def read_clone_key(state: str) -> CloneKey:
    """Return the clone key in a state folder. It writes nothing and raises no error."""
    found = CloneKey(os.path.join(state, NAME))
    try:
        handle = local_files.open_file(found.path, os.O_RDONLY)
    except FileNotFoundError:
        found.is_missing = True
        return found
    except OSError as error:
        if not isinstance(error, PermissionError) or os.stat(os.path.dirname(state)).st_uid == os.geteuid():
            found.damage = f"cannot open {found.path} ({error.strerror})"
        return found  # else it belongs to another user of a shared repository: this user has no key
    try:
        found._take(state, handle)
    except OSError as error:
        found.damage = f"cannot read {found.path} ({error.strerror})"
    finally:
        os.close(handle)
    return found
