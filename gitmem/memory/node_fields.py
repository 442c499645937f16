"""What the fields of a node may be, checked before anything is asked or written."""

from __future__ import annotations

from .. import records
from ..commit_message import sanitize
from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller

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
TAGS_MAX = 100
METADATA_MAX = 100  # entries
# Words that people try, and what they stand for.
STATUS_OF = {
    **dict.fromkeys(("done", "resolved", "resolve", "fixed", "complete", "completed", "finished", "close"), "closed"),
    **dict.fromkeys(("open", "opened", "reopen", "reopened"), "active"),
}  # fmt: skip
REVERSED = {
    **dict.fromkeys(
        ("blocked_by", "is_blocked_by", "depends_on", "needs", "requires", "waits_for"), "blocks"
    ),
    "child_of": "parent_child",
}
TAGS = (*TAXONOMY, *ALIASES, "todo", "task", "fact", "gotcha", "lesson", "learning", "rule")


def one_of(what: str, text: str, known: Sequence[str]) -> str:
    """One of the known words, in any case. UsageError with all of them for another."""
    word = text.strip().replace("-", "_").lower()
    for each in known:
        if each.lower() == word:
            return each
    suggestions, more = _meant(what, word, known)
    raise UsageError(
        f"{refused(what, text)}; nothing was written.",
        hint=f"{more}It is one of {', '.join(known)}.",
        code=f"bad-{what.replace(' ', '-')}",
        suggestions=suggestions,
    )


def refused(what: str, text: str) -> str:
    """What is wrong with a text: that it is something else, or nothing."""
    shown = sanitize(text)[:60]
    return f"{shown} is no {what}" if shown.strip() else f"No {what} is given"


def _meant(what: str, word: str, known: Sequence[str]) -> tuple[list[str], str]:
    """The known words that an unknown one may stand for, and a sentence where something else is meant."""
    if what == "status" and word in STATUS_OF:
        return [STATUS_OF[word]], ""
    if what == "relation" and word in REVERSED:
        return [], f"Turn it round: `gitmem mem relate B {REVERSED[word]} A`. "
    if what == "type of node" and word in TAGS:
        return [], f"That is a tag: `--type discovery --tag {word}`. "
    if len(word) < 2:
        return [], ""
    return [each for each in known if each[:2].lower() == word[:2] or word in each.lower()], ""


def node_type(text: str) -> tuple[str, tuple[str, ...]]:
    """The type that a word names, and the tags that come with it."""
    word = one_of("type of node", text, (*TYPES, *ALIASES))
    return ("discovery", (word,)) if word in ALIASES else (word, ())


def work_unit(text: str) -> str:
    """A work unit such as WU-123."""
    if not records.fits("node", "wu_id", text):
        raise UsageError(
            f"{refused('work unit', text)}; nothing was written.",
            hint="Capitals and digits, a dash and a number, such as WU-123.",
            code="bad-wu",
            suggestions=[text.upper()] if records.fits("node", "wu_id", text.upper()) else [],
        )
    return text


def unit_of(wu: str | None, caller: Caller | None) -> str:
    """The work unit that is named, else that of the caller's session. UsageError where there is neither."""
    found = wu if wu is not None or caller is None else caller.wu_id
    if found is None:
        raise UsageError(
            "Nothing says which work unit is meant: your session has none.",
            hint="Name it, such as `gitmem mem ready --wu WU-123`.",
            code="usage",
            next=["gitmem mem list", "gitmem mem ready --help"],
        )
    return found


def tag(text: str) -> str:
    """A tag: one line of at most 100 characters without commas."""
    if not records.fits("node", "tags", [text]):
        raise UsageError(
            f"{refused('tag', repr(sanitize(text)) if text.strip() else '')}; nothing was written.",
            hint="One line of at most 100 characters, without commas and without white space at its ends.",
            code="bad-tag",
        )
    return text


def tags(given: Sequence[str]) -> list[str]:
    """Tags, each once; at most a hundred of them."""
    found = list(dict.fromkeys(map(tag, given)))
    if len(found) > TAGS_MAX:
        raise UsageError(
            f"There are {len(found)} tags, and at most {TAGS_MAX} are allowed; nothing was written.",
            code="bad-tag",
        )
    return found


def flag(what: str, given: object) -> bool:
    """Yes or no; not given is no. A text such as "false" is neither."""
    if given is not None and not isinstance(given, bool):
        raise UsageError(f"The {what} must be true or false; nothing was written.", code=f"bad-{what}")
    return bool(given)


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
