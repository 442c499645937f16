"""What owners of claims are told once: that somebody passed a claim of theirs with a reason, released it, or ended it by forged records."""

from __future__ import annotations

from .. import records
from ..agents import audits, heartbeats
from ..commit_message import cut, sanitize
from ..digests import sha256
from ..log.lines import format_at
from ..order import claim as claim_fold
from . import claim_view, standing_claims
from .claim_answers import paths_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from ..order.claim import FoldedClaim
    from ..store import Store
    from .standing_claims import StandingClaim

LOOKED_MAX = 50  # newest releases, and audits
OF_AUDIT_MAX = 20  # claims that an audit names
REASON_MAX = 200
_RELEASED = (
    "SELECT claim_id FROM path_claim WHERE released = 1 AND until > ? AND session IN (SELECT name FROM own)"
    " ORDER BY line DESC LIMIT ?"
)
_AUDITS = (
    "SELECT body FROM line WHERE kind = 'audit' AND at >= ? AND at <= ? AND json_extract(body, '$.action') = ?"
    " ORDER BY at DESC LIMIT ?"
)


def news(store: Store) -> Iterator[tuple[str, str, str]]:
    """Yield what sessions of this clone should be told once: the session, a word for what it is about, and a sentence."""
    db, now = store.index.db, store.now()
    here = heartbeats.known_sessions(store).keys()
    for (claim_id,) in db.execute(_RELEASED, (now, LOOKED_MAX)).fetchall():
        claim = claim_view.folded(db, claim_id, forged=False)
        record = claim.released if claim is not None else None
        if claim is None or record is None or record["sender_identity"] == claim.owner[0]:
            continue
        if (session := claim.owner[1] or "") in here:
            who = record.get("sender_name") or record["sender_identity"]
            text = _sentence("released", who, claim, record.get("reason") or "")
            yield session, f"released/{claim_id}", text
    for each, sentence in ended_by_forgeries(store, db):
        if (session := each.claim.owner[1] or "") in here:
            yield session, f"forged/{each.id}", sentence
    since = format_at(max(0, now - claim_fold.LEASE_MAX_MICROS))
    until = format_at(now + claim_fold.AHEAD_MICROS)
    for (body,) in db.execute(_AUDITS, (since, until, audits.CLAIM, LOOKED_MAX)).fetchall():
        audit = records.read_kind("audit", body.encode())
        for claim_id in audits.claim_ids(audit)[:OF_AUDIT_MAX] if audit is not None else ():
            claim = claim_view.folded(db, claim_id, forged=False)
            if claim is None or audit is None or audit["sender_identity"] == claim.owner[0]:
                continue
            if (session := claim.owner[1] or "") in here:
                who = audit.get("sender_name") or audit["sender_identity"]
                about = sha256(audit["sender_identity"].encode()).hexdigest()[:12]
                reason = audit["reason"].rpartition(" (")[0]
                yield session, f"passed/{claim_id}/{about}", _sentence("passed", who, claim, reason)


def ended_by_forgeries(store: Store, db: sqlite3.Connection) -> list[tuple[StandingClaim, str]]:
    """Return the claims of this clone that stand here and not elsewhere, with a sentence.

    Records that claim to be from this clone, and are not, have released them, or ended their session or task.
    """
    if db.execute("SELECT 1 FROM forged LIMIT 1").fetchone() is None:
        return []
    elsewhere = {each.id for each in standing_claims.standing(store, db=db)}
    return [
        (
            each,
            f"FORGED: records not written in this clone end the claim {each.id} on {paths_text(each.claim.record['paths'])}. "
            "It stands here; other clones no longer show it. `gitmem doctor` lists forged records.",
        )
        for each in standing_claims.standing(store, forged=False, db=db)
        if each.is_here and not each.is_over and each.id not in elsewhere
    ]


def _sentence(what: str, who: str, claim: FoldedClaim, reason: str) -> str:
    shown = paths_text(claim.record["paths"])
    why = cut(sanitize(reason.replace("\n", " ")), REASON_MAX)
    return f"{what}: {sanitize(who)} {what} your claim {claim.record['claim_id']} on {shown}: {why}"
