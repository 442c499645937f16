"""What the fields of a node may be, checked before anything is asked or written."""

from __future__ import annotations

from ... import records
from ...errors import UsageError
from ..story import harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES = ("session", "discovery", "checkpoint", "note", "summary")
LIFECYCLES = ("ephemeral", "session", "wu", "project")
PRIORITIES = ("P0", "P1", "P2", "P3")
RELATIONS = ("blocks", "parent_child", "related", "discovered_from")
STATUSES = ("active", "closed", "archived", "deleted")
# Words for a discovery of a certain kind: it gets the word as its tag.
ALIASES = ("bug", "idea", "question", "dependency")
LIFECYCLE_OF = {
    "session": "wu",
    "discovery": "wu",
    "checkpoint": "session",
    "note": "session",
    "summary": "project",
}
# What a promoted node may be called.
TAXONOMY = ("decision", "convention", "pattern", "pitfall", "interface", "invariant", "faq")
METADATA_MAX = 100  # entries


def one_of(what: str, text: str, known: Sequence[str]) -> str:
    """One of the known words, in any case. UsageError with all of them for another."""
    word = text.strip().replace("-", "_")
    for each in known:
        if each.lower() == word.lower():
            return each
    raise UsageError(
        f"{harmless(text)[:60] or 'Nothing'} is no {what}; nothing was written.",
        hint=f"It is one of {', '.join(known)}.",
        code=f"bad-{what.replace(' ', '-')}",
        suggestions=[each for each in known if each[:1].lower() == word[:1].lower()],
    )


def node_type(text: str) -> tuple[str, tuple[str, ...]]:
    """The type that a word names, and the tags that come with it."""
    word = one_of("type of node", text, (*TYPES, *ALIASES))
    return ("discovery", (word,)) if word in ALIASES else (word, ())


def work_unit(text: str) -> str:
    """A work unit such as WU-123."""
    if not records.fits("node", "wu_id", text):
        raise UsageError(
            f"{harmless(text)[:60] or 'Nothing'} is no work unit; nothing was written.",
            hint="Capitals and digits, a dash and a number, such as WU-123.",
            code="bad-wu",
            suggestions=[text.upper()] if records.fits("node", "wu_id", text.upper()) else [],
        )
    return text


def tag(text: str) -> str:
    """A tag: one line of at most 100 characters without commas."""
    if not records.fits("node", "tags", [text]):
        raise UsageError(
            f"{harmless(text)[:60] or 'Nothing'!r} is no tag; nothing was written.",
            hint="One line of at most 100 characters, without commas and without white space at its ends.",
            code="bad-tag",
        )
    return text


def content(text: object) -> str:
    """The text of a node: not blank; its size is the record's business."""
    if not isinstance(text, str):
        raise UsageError("The content must be text; nothing was written.", code="bad-content")
    if not text.strip():
        raise UsageError(
            "The content is empty; nothing was written.",
            hint="A variable that is not set may be the cause.",
            code="empty-content",
        )
    return text


def texts(what: str, given: object) -> list[str]:
    """A list of texts, or what stands between the commas of one text."""
    if isinstance(given, str):
        return [part.strip() for part in given.split(",") if part.strip()]
    if given is None or (isinstance(given, (list, tuple)) and all(isinstance(each, str) for each in given)):
        return [str(each) for each in given or ()]
    raise UsageError(f"The {what} must be texts; nothing was written.", code=f"bad-{what}")


def metadata(given: object) -> dict[str, object]:
    """Entries of the metadata: whatever JSON carries, at most a hundred."""
    if given is not None and not isinstance(given, dict):
        raise UsageError("The metadata must be an object; nothing was written.", code="bad-metadata")
    found = dict(given or {})
    if len(found) > METADATA_MAX:
        raise UsageError(f"The metadata has {len(found)} entries, and at most {METADATA_MAX} are allowed; "
                         "nothing was written.", code="bad-metadata")  # fmt: skip
    return found
