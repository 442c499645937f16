"""The log's ref and its tree: names, fixed files and constants. `docs/format.md` is the specification."""

from __future__ import annotations

from ..errors import StoreError
from ..git.files import LOG_REF as LOG_REF
from . import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..git.objects import Draft, TreeEntry
    from ..git.port import Git

REMOTES_PREFIX = "refs/gitmem/remotes/"
ACCEPTED = "accepted"  # below the copies of a remote's refs: its shared log as it last passed the checks
BRANCH = "refs/heads/gitmem"
# The part of the log's history that a remote has, as far as known; the commits above it are this clone's own.
PUBLISHED_REF = "refs/gitmem/published"
PUBLISH_REFS = (BRANCH, LOG_REF)
FORMAT = 1
FORMAT_MAX = FORMAT + 100  # a higher one is invalid, not newer: its writer tries to prevent repair
SEGMENT_MAX_BYTES = 16 * 1024  # an open segment is closed after the append that reaches this
UNION_BYTES_MAX = 16 * 1024 * 1024  # no union makes a larger file, unless an input is larger
SEGMENT_BYTES_MAX = 1024 * 1024  # an append makes no larger file and adds nothing to one
FOLDERS_MAX = 16  # nested folders; what is deeper is no part of the log
STALE_LOCK_SECONDS = 10.0  # git holds the lock of a ref for milliseconds; an older lock is stale
# An empty tree by `gitmem <gitmem@localhost> 0 +0000`, message `gitmem log`. The commit is the same in every
# clone, so logs that were started separately are related.
GENESIS = "45788d4cd5abb587813b901f8cf28b8f29c15c6f"
# The same by the length of an object id: 40 for sha1, 64 for sha256.
GENESES = {40: GENESIS, 64: "c55dee08abe6393e438ed03e098a5a2627ef804c2f24a2dff5ca3a24ee13f119"}
NOBODY = ("gitmem", "gitmem@localhost")

README = b"""# gitmem

This branch is the coordination log of this repository: signals, receipts and sessions of the agents
(and people) that work in it, one JSON line each, written and merged by `gitmem`.

Nothing here is source code. Do not merge it into other branches. `git log` on it tells the story.
"""
ATTRIBUTES = b"gm-*.jsonl -text merge=union\n"


def genesis(oid: str) -> str:
    """Return the first commit of every log, for the hash algorithm of this object id."""
    return GENESES[len(oid)]


def genesis_draft() -> Draft:
    """Return the draft of the constant first commit; without a parent its id is one of `GENESES`."""
    from ..git.objects import Draft, Signature

    nobody = Signature(*NOBODY, 0)
    return Draft({}, nobody, nobody, "gitmem log\n")


class Format:
    """The `format` file: the format version that readers need, and the ref on which the log is published.

    Of several, the one with the greatest `(format, epoch, turn, bytes)` wins as a whole.
    """

    def __init__(self, content: bytes) -> None:
        import json

        self.content = content
        try:
            found = json.loads(content)
            numbers = [found["format"], found.get("epoch", 0), found.get("turn", 0)]
            if any(type(number) is not int for number in numbers):
                raise ValueError("a number is not whole")
            self.format, self.epoch, self.turn = numbers
            publish = str(found.get("publish", BRANCH))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError(
                "The file `format` of the log cannot be read. Nothing was written.",
                hint="Run `gitmem doctor` for details.",
                code="bad-format",
                next=["gitmem doctor"],
            ) from error
        self.publish = publish if publish in PUBLISH_REFS else BRANCH

    @classmethod
    def make(cls, *, epoch: int = 0, turn: int = 0, publish: str = BRANCH) -> Format:
        """Return the format of a log of the current version, by default of a new one."""
        return cls(f'{{"format":{FORMAT},"epoch":{epoch},"turn":{turn},"publish":"{publish}"}}\n'.encode())

    @property
    def rank(self) -> tuple[int, int, int, bytes]:
        """The sort key; of several formats the one with the greatest wins."""
        return (self.format, self.epoch, self.turn, self.content)

    def refuse_newer(self) -> None:
        """Reject a log that a newer gitmem has written.

        Raises:
            StoreError: Code `newer-format`.
        """
        if self.format > FORMAT:
            raise StoreError(
                f"This log has format {self.format}, and this gitmem writes format {FORMAT}: "
                "it is read-only here. Nothing was written.",
                hint="Install the version of gitmem that the other clones use.",
                code="newer-format",
                next=["pip install --upgrade gitmem-coord"],
            )


def missing_object(error: KeyError, kept: str) -> StoreError:
    """Return the error for a missing object of the log; `kept` describes the state of the data."""
    return StoreError(
        f"The object {error.args[0]} of the log is missing or damaged; {kept}.",
        hint="`gitmem doctor` lists what is missing.",
        code="missing-object",
        next=["gitmem doctor"],
    )


def locked(kept: str) -> StoreError:
    """Return the error for a log ref that cannot be moved; `kept` describes the state of the data."""
    return StoreError(
        f"Cannot move {LOG_REF}: git has a lock on it, or it changes constantly; {kept}.",
        hint="Run the command again; `gitmem doctor` reports stale locks.",
        code="locked",
        next=["gitmem doctor"],
    )


def read_format(git: Git, root: dict[str, TreeEntry]) -> Format | None:
    """Return the `format` file of a root tree, or None if it has none and so is not a log."""
    entry = root.get("format")
    return Format(git.blob(entry.oid)) if entry and not entry.is_tree else None


def fixed_files(format_content: bytes, projects: Iterable[str]) -> dict[str, bytes | TreeEntry | None]:
    """Return the files that the tree of every log has besides its segments."""
    files: dict[str, bytes | TreeEntry | None] = {
        "README.md": README,
        ".gitattributes": ATTRIBUTES,
        "format": format_content,
    }
    files.update({f"projects/{oid}": b"" for oid in projects})
    return files


def project_ids(git: Git, root: dict[str, TreeEntry]) -> set[str]:
    """Return the root commits of the repositories that this log belongs to."""
    entry = root.get("projects")
    return set(git.tree(entry.oid)) if entry and entry.is_tree else set()


def segment_path(stream: str, line: bytes, token: str) -> str:
    """Return the path of a line's segment. The token comes just before `.jsonl`: git packs by the last characters."""
    return f"{stream}/{lines.day(line)}/gm-{token}.jsonl"


def content_at(git: Git, root: str, path: str) -> bytes:
    """Return the content of the file at a path below the tree `root`; empty if there is none."""
    found = lookup(git, root, path)
    return b"" if found is None or found.is_tree else git.blob(found.oid)


def lookup(git: Git, root: str, path: str) -> TreeEntry | None:
    """Return the entry at a path below the tree `root`, or None."""
    *folders, name = path.split("/")
    for folder in folders:
        entry = git.tree(root).get(folder)
        if entry is None or not entry.is_tree:
            return None
        root = entry.oid
    return git.tree(root).get(name)
