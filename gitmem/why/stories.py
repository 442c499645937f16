"""The story of one commit: its sessions, task, thread and memory."""

from __future__ import annotations

from ..agents import presence
from ..claims import claim_view, path_patterns
from ..commits import hook_notes, made_by
from ..log.lines import format_at
from ..outcome import Outcome
from ..records.ids import role_id
from ..tasks import find_task
from ..tasks.task_facts import micros
from ..text.sanitize import title
from . import agreed, known

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..commits.commit_view import CommitLine
    from ..commits.made_by import MadeHere, Makers
    from ..git.commit_facts import CommitFacts
    from ..store import Store
    from .agreed import AgreedThread, TaskOfCommit
    from .known import KnownNode

SECOND = 1_000_000
DAY = 24 * 3600 * SECOND
CLAIMS_MAX = 50  # that stood at the time of a commit and are compared
STEPS_MAX = 20_000  # of these comparisons
POSSIBLE_MAX = 3


class MakerRow(Outcome):
    """A session that made or rewrote a commit.

    Attributes:
        agent, name, role: Of the session: agent identity or session id, display name, role.
        evidence: `environment`, `output`, or `alone`, which is inferred.
        here: Whether this clone has recorded it; otherwise the writer says so.
        wu_id: The work unit of its task, else that of the session, as for claims.
    """

    def __init__(self, db: sqlite3.Connection, line: CommitLine) -> None:
        record = line.record
        self.session_id = record.get("sender_session")
        self.agent = record["sender_identity"]
        names = presence.names_by_session(db)
        self.name = (
            (self.session_id and names.get(self.session_id)) or record.get("sender_name") or self.agent
        )
        self.role = _role(db, self.session_id)
        self.action = record["action"]
        self.evidence = record["evidence"]
        self.inferred = self.evidence == made_by.ALONE
        self.here = line.is_own
        self.task_id = record.get("task_id")
        self.wu_id = find_task.unit_of(db, self.task_id) or record.get("wu_id")


class PossibleMaker(Outcome):
    """A session that had claimed a file of a commit when it was made: an inference, no record."""

    def __init__(
        self, agent: str, session_id: str | None, name: str, claim_id: str, wu_id: str | None
    ) -> None:
        self.agent = agent
        self.session_id = session_id
        self.name = name
        self.claim_id = claim_id
        self.wu_id = wu_id


class Story(Outcome):
    """What is known of one commit.

    Attributes:
        lines, line_count: The ranges of the file that it made, and their number of lines.
        paths: Names of the file: now, and in the commit.
        made_by: The sessions that made it, or parts of it; several from other clones may contradict each other.
        is_whole: Whether these are all, as far as records tell.
        rewritten_by: The sessions that only rebased, picked or squashed it.
        possible: Sessions that may have made it, if no record says who did.
        now: Whether what it is based on still holds: `holds`, or what has changed.
    """

    def __init__(self, commit: str, facts: CommitFacts, paths: Sequence[str]) -> None:
        self.commit = commit
        self.subject = facts.subject
        self.author = facts.author
        self.committed_at = format_at(facts.committed * SECOND)
        self.lines: list[list[int]] = []
        self.line_count = 0
        self.paths = list(paths)
        self.made_by: list[MakerRow] = []
        self.is_whole = True
        self.rewritten_by: list[MakerRow] = []
        self.possible: list[PossibleMaker] = []
        self.wu_id: str | None = None
        self.task: TaskOfCommit | None = None
        self.threads: list[AgreedThread] = []
        self.nodes: list[KnownNode] = []
        self.now: list[str] = []


def story(
    store: Store,
    commit: str,
    facts: CommitFacts,
    patch_id: str | None,
    paths: Sequence[str],
    *,
    inferred: bool,
    here: MadeHere,
) -> Story:
    """Return the story of a commit.

    Args:
        patch_id: The patch id of its changes, if no record names it.
        paths: The file that was asked about.
        inferred: Whether what is only inferred may be in it.
        here: The commits that were made in this clone.
    """
    db = store.db()
    found = Story(commit, facts, paths)
    makers = made_by.find(
        db, commit, patch_id=patch_id, authored=facts.authored, committed=facts.committed, inferred=inferred, here=here,
    )  # fmt: skip
    found.made_by = [MakerRow(db, each) for each in makers.made.values()]
    found.rewritten_by = [
        MakerRow(db, each) for session, each in makers.rewrote.items() if session not in makers.made
    ]
    found.is_whole = makers.is_whole
    moment = (facts.authored if makers.made else facts.committed) * SECOND + SECOND - 1
    if inferred and not found.made_by and not hook_notes.without_session(store.repo, commit):
        found.possible = _possible(db, paths, facts.authored * SECOND + SECOND - 1)
    _add_context(store, found, makers, moment)
    found.now = _now(found)
    return found


def _add_context(store: Store, found: Story, makers: Makers, moment: int) -> None:
    """Add task, threads and memory."""
    db, task = store.db(), None
    first = next((each for each in found.made_by if each.task_id or each.wu_id), None)
    if first is not None:
        found.wu_id = first.wu_id
        task = agreed.folded_task(db, first.task_id)
        found.task = agreed.task(db, first.task_id, task) if first.task_id else None
    found.threads = agreed.threads_of(db, task, found.wu_id, moment)
    found.nodes = known.nodes(store, found.paths, found.wu_id, moment)


def _now(found: Story) -> list[str]:
    """Return what has changed of that which a commit is based on."""
    changes = []
    for each in found.threads:
        if each.agreed_then and each.replaced:
            changes.append(f"{each.ended} in {each.thread_id}{_by(each)}")
        elif each.reversed:
            changes.append(
                f"{', '.join(each.reversed)} no longer agree{'s' if len(each.reversed) == 1 else ''} in {each.thread_id}"
            )
        elif each.rejected and each.by == agreed.BY_TASK:
            changes.append(f"rejected in {each.thread_id} by {', '.join(each.rejected)}")
    changed = (node for node in found.nodes if node.known_then and node.now != known.HOLDS)
    return [*changes, *(f"{node.id} {node.now}" for node in changed)]


def _by(each: agreed.AgreedThread) -> str:
    now = ", ".join(one.signal_id for one in each.in_force)
    if each.ended == "replaced":
        return f" by {now}"
    return f"; now in force: {now}" if now else "; nothing is in force"


def _role(db: sqlite3.Connection, session_id: str | None) -> str | None:
    row = (
        db.execute(
            "SELECT lifecycle_role, specialty_profile FROM session WHERE session_id = ?", (session_id,)
        ).fetchone()
        if session_id
        else None
    )
    return role_id(*row) if row is not None else None


def _released_at(db: sqlite3.Connection, claim_id: str) -> int:
    """Return when a claim was released, in microseconds; 0 if that can't be read."""
    claim = claim_view.folded(db, claim_id)
    return micros(claim.released["at"]) if claim is not None and claim.released is not None else 0


def _possible(db: sqlite3.Connection, paths: Sequence[str], moment: int) -> list[PossibleMaker]:
    """Return the sessions whose claims covered a file at a time, by the latest claims that stood then."""
    rows = db.execute(
        "SELECT c.claim_id, c.owner, c.session, c.wu_id, c.released, l.body FROM path_claim c JOIN line l ON l.id = c.line"
        " WHERE c.until BETWEEN ? AND ? AND c.since <= ? AND c.line NOT IN (SELECT line FROM forged) ORDER BY c.until LIMIT ?",
        (moment, moment + DAY, moment, CLAIMS_MAX),
    ).fetchall()
    from .. import records

    budget = path_patterns.Budget(STEPS_MAX)
    names = presence.names_by_session(db)
    found: dict[str, PossibleMaker] = {}
    for claim_id, owner, session, wu_id, released, body in rows:
        record = records.read_kind("claim", body.encode())
        patterns = path_patterns.prepared(record["paths"]) if record is not None else ()
        if not any(each.covers(path_patterns.normal(path), budget) for path in paths for each in patterns):
            continue
        if not released or _released_at(db, claim_id) > moment:
            name = (session and names.get(session)) or title(owner)
            found.setdefault(session or owner, PossibleMaker(owner, session, name, claim_id, wu_id or None))
    return list(found.values())[:POSSIBLE_MAX]
