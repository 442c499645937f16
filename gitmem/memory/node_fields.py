"""Validate the fields of a node before anything is read or written."""

from __future__ import annotations

from .. import records
from ..commit_message import sanitize
from ..errors import UsageError
from ..records import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES = ("session", "discovery", "checkpoint", "note", "summary")
DEFAULT_TYPE = "discovery"
LIFECYCLES = ("ephemeral", "session", "wu", "project")
PRIORITIES = ("P0", "P1", "P2", "P3")
RELATIONS = ("blocks", "parent_child", "related", "discovered_from", "supersedes")
# Aliases of the type discovery; the alias becomes a tag.
ALIASES = ("bug", "idea", "question", "dependency")
LIFECYCLE_OF = {
    "session": "wu",
    "discovery": "wu",
    "checkpoint": "session",
    "note": "session",
    "summary": "project",
}
# The tags of promoted nodes.
TAXONOMY = ("decision", "convention", "pattern", "pitfall", "interface", "invariant", "faq")
TAGS_MAX = 100
METADATA_MAX = 100  # entries
WORK = (*ALIASES, "todo", "task")  # tags of what somebody can take up
KNOWLEDGE = (*TAXONOMY, "fact", "gotcha", "lesson", "learning", "rule")  # tags of what nobody has to do
TAGS = (*WORK, *KNOWLEDGE)


def one_of(what: str, text: str, known: Sequence[str]) -> str:
    """Return the known word that matches a text, whatever its case.

    Raises:
        UsageError: None matches; the message lists the known words.
    """
    word = text.strip().replace("-", "_").lower()
    for each in known:
        if each.lower() == word:
            return each
    near = [
        each for each in known if len(word) > 1 and (each[:2].lower() == word[:2] or word in each.lower())
    ]
    is_tag = what == "type of node" and word in TAGS
    raise UsageError(
        f"{invalid_message(what, text)}. Nothing was written.",
        hint=f"{f'That is a tag: `--type discovery --tag {word}`. ' if is_tag else ''}Choose from {', '.join(known)}.",
        code=f"bad-{what.replace(' ', '-')}",
        suggestions=[] if is_tag else near,
    )


def invalid_message(what: str, text: str) -> str:
    """Return the message about an invalid or empty text."""
    shown = sanitize(text)[:60]
    return f"Invalid {what}: {shown}" if shown.strip() else f"Missing {what}"


def node_type(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the type that a word names, and the tags that the alias adds."""
    word = one_of("type of node", text, (*TYPES, *ALIASES))
    return ("discovery", (word,)) if word in ALIASES else (word, ())


def work_unit(text: str) -> str:
    """Validate a work unit such as WU-123 or fix-login."""
    if not ids.is_work_unit(text):
        raise UsageError(
            f"{invalid_message('work unit', text)}. Nothing was written.",
            hint=f"Use {ids.UNIT_FORM}.",
            code="bad-wu",
        )
    return text


def tag(text: str) -> str:
    """Validate a tag: one line of at most 100 characters without commas."""
    if not records.fits("node", "tags", [text]):
        raise UsageError(
            f"{invalid_message('tag', repr(sanitize(text)) if text.strip() else '')}. Nothing was written.",
            hint="Use one line of at most 100 characters, without commas and without leading or trailing white space.",
            code="bad-tag",
        )
    return text


def tags(given: Sequence[str]) -> list[str]:
    """Validate tags and remove duplicates; a hundred at most."""
    found = list(dict.fromkeys(map(tag, given)))
    if len(found) > TAGS_MAX:
        raise UsageError(
            f"Too many tags: {len(found)}; the maximum is {TAGS_MAX}. Nothing was written.",
            code="bad-tag",
        )
    return found


def flag(what: str, given: object) -> bool:
    """Validate a boolean; None is False. A text such as "false" is rejected."""
    if given is not None and not isinstance(given, bool):
        raise UsageError(f"The {what} must be true or false. Nothing was written.", code=f"bad-{what}")
    return bool(given)


def content(text: object) -> str:
    """Validate the text of a node: not blank. The record checks its size."""
    if not isinstance(text, str):
        raise UsageError("The content must be text. Nothing was written.", code="bad-content")
    if not text.strip():
        raise UsageError(
            "The content is empty. Nothing was written.",
            hint="Check whether a shell variable in the command is unset.",
            code="empty-content",
        )
    return text


def texts(what: str, given: object) -> list[str]:
    """Return a list of texts, or the parts of one text between its commas."""
    if isinstance(given, str):
        return [part.strip() for part in given.split(",") if part.strip()]
    if given is None or (isinstance(given, (list, tuple)) and all(isinstance(each, str) for each in given)):
        return [str(each) for each in given or ()]
    raise UsageError(f"The {what} must be texts. Nothing was written.", code=f"bad-{what}")


def metadata(given: object) -> dict[str, object]:
    """Validate metadata: an object of JSON values with at most a hundred entries."""
    if given is not None and not isinstance(given, dict):
        raise UsageError("The metadata must be an object. Nothing was written.", code="bad-metadata")
    found = dict(given or {})
    if len(found) > METADATA_MAX:
        raise UsageError(f"Too many metadata entries: {len(found)}; the maximum is {METADATA_MAX}. "
                         "Nothing was written.", code="bad-metadata")  # fmt: skip
    return found
