"""The ref and its tree: names, fixed files and constants. `docs/format.md` is the specification."""

from __future__ import annotations

from ..errors import StoreError
from ..git.read_ref import LOG_REF as LOG_REF
from . import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..git.plumbing import Git
    from ..git.port import Draft, TreeEntry

REMOTES_PREFIX = "refs/gitmem/remotes/"
BRANCH = "refs/heads/gitmem"
# What of the log's history a remote has, as far as this clone knows: what stands above it is this clone's own.
PUBLISHED_REF = "refs/gitmem/published"
PUBLISH_PLACES = (BRANCH, LOG_REF)
FORMAT = 1
FORMAT_MAX = FORMAT + 100  # no newer gitmem has a format above this: who writes one wants nobody to repair it
SEGMENT_MAX_BYTES = 16 * 1024  # an open segment is closed after the append that reaches this
UNION_BYTES_MAX = 16 * 1024 * 1024  # no union of segments makes a larger file than this, or than it was given
SEGMENT_BYTES_MAX = 1024 * 1024  # no append makes a larger file, or adds to one
STALE_LOCK_SECONDS = 10.0  # git holds the lock of a ref for milliseconds; an older one is of the dead
# An empty tree by `gitmem <gitmem@localhost> 0 +0000`, message `gitmem log`: the same commit in every
# clone, so that logs that were started apart are related.
GENESIS = "45788d4cd5abb587813b901f8cf28b8f29c15c6f"
# The same by the length of an object id: with sha1, and with sha256.
GENESES = {40: GENESIS, 64: "c55dee08abe6393e438ed03e098a5a2627ef804c2f24a2dff5ca3a24ee13f119"}
NOBODY = ("gitmem", "gitmem@localhost")

README = b"""# gitmem

This branch is the coordination log of this repository: signals, receipts and sessions of the agents
(and people) that work in it, one JSON line each, written and merged by `gitmem`.

Nothing here is source code. Do not merge it into other branches. `git log` on it tells the story.
"""
ATTRIBUTES = b"gm-*.jsonl -text merge=union\n"


def genesis(oid: str) -> str:
    """The first commit of every log, in a repository with ids such as this one."""
    return GENESES[len(oid)]


def genesis_draft() -> Draft:
    """The constant first commit; written on no parent its oid is one of `GENESES`."""
    from ..git.port import Draft, Signature

    nobody = Signature(*NOBODY, 0)
    return Draft({}, nobody, nobody, "gitmem log\n")


class Format:
    """The `format` file: which reader it needs, and where the log is published.

    Of several, the greatest `(format, turn, bytes)` wins whole. `epoch` is reserved: only 0 is valid.
    """

    __slots__ = ("content", "epoch", "format", "publish", "turn")

    def __init__(self, content: bytes) -> None:
        import json

        self.content = content
        try:
            fields = json.loads(content)
            numbers = [fields["format"], fields.get("epoch", 0), fields.get("turn", 0)]
            if any(type(number) is not int for number in numbers):
                raise ValueError("a number is not whole")
            self.format, self.epoch, self.turn = numbers
            publish = str(fields.get("publish", BRANCH))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError(
                "The file `format` of the log cannot be read; nothing was written.",
                hint="`gitmem doctor` says more.",
                code="bad-format",
                next=["gitmem doctor"],
            ) from error
        self.publish = publish if publish in PUBLISH_PLACES else BRANCH

    @classmethod
    def make(cls, *, turn: int = 0, publish: str = BRANCH) -> Format:
        return cls(f'{{"format":{FORMAT},"epoch":0,"turn":{turn},"publish":"{publish}"}}\n'.encode())

    @property
    def rank(self) -> tuple[int, int, bytes]:
        return (self.format, self.turn, self.content)

    def refuse_newer(self) -> None:
        """StoreError where this log was written by a gitmem that knows more than this one."""
        if self.format > FORMAT:
            raise StoreError(
                f"This log has format {self.format}, and this gitmem writes format {FORMAT}: "
                "it reads what it can, and nothing was written.",
                hint="Install the gitmem that the others use, and try again.",
                code="newer-format",
                next=["pip install --upgrade gitmem-coord"],
            )


def missing_object(error: KeyError, kept: str) -> StoreError:
    """The error for an object of the log that the port does not find; `kept` says what became of the data."""
    return StoreError(
        f"The object {error.args[0]} of the log is missing or damaged; {kept}.",
        hint="`gitmem doctor` lists what is missing.",
        code="missing-object",
        next=["gitmem doctor"],
    )


def locked(kept: str) -> StoreError:
    """The error for the log's ref where it can't be moved; `kept` says what became of the data."""
    return StoreError(
        f"{LOG_REF} could not be moved: git holds a lock on it, or it moves all the time; {kept}.",
        hint="Run the command again; `gitmem doctor` shows a lock that stays.",
        code="locked",
        next=["gitmem doctor"],
    )


def read_format(git: Git, root: dict[str, TreeEntry]) -> Format | None:
    """The `format` file of a root tree, or None where there is none: such a tree is no log."""
    entry = root.get("format")
    return Format(git.blob(entry.oid)) if entry and not entry.is_tree else None


def fixed_files(format_content: bytes, projects: Iterable[str]) -> dict[str, bytes | TreeEntry | None]:
    """What stands in the tree of every log beside its segments."""
    files: dict[str, bytes | TreeEntry | None] = {
        "README.md": README,
        ".gitattributes": ATTRIBUTES,
        "format": format_content,
    }
    files.update({f"projects/{oid}": b"" for oid in projects})
    return files


def project_ids(git: Git, root: dict[str, TreeEntry]) -> set[str]:
    """The root commits of the repositories that this log belongs to."""
    entry = root.get("projects")
    return set(git.tree(entry.oid)) if entry and entry.is_tree else set()


def segment_path(stream: str, line: bytes, token: str) -> str:
    """Where a line goes. What differs stands just before `.jsonl`: git's packer groups by the last characters."""
    return f"{stream}/{lines.day(line)}/gm-{token}.jsonl"


def lookup(git: Git, root: str, path: str) -> TreeEntry | None:
    """The entry at a path below the tree `root`, or None."""
    *folders, name = path.split("/")
    for folder in folders:
        entry = git.tree(root).get(folder)
        if entry is None or not entry.is_tree:
            return None
        root = entry.oid
    return git.tree(root).get(name)
