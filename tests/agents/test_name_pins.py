"""Names that this clone has used keep their holder, whatever a peer claims later."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from rapidfuzz.distance import Levenshtein

from gitmem.agents import addressing, caller, lifecycle, names, roster
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.agents.lifecycle import SessionResult
from gitmem.errors import UsageError
from gitmem.signals import inbox
from gitmem.signals import send as signals

from ..sandbox import DAY, HOUR, START, Clock, acting, annas, carry, new_repo, open_store, say

IDENTITY = annas("codex:implementer:host42")


class Desk:
    """This clone with an agent, another clone with Planck, and a third that wants Planck's mail."""

    def __init__(self, tmp_path: Path, repo: Path) -> None:
        self.clock, self.past = Clock(), Clock()
        self.here = open_store(repo, self.clock)
        self.there = open_store(new_repo(tmp_path / "there"), self.clock)
        self.past.value = START - 46 * HOUR
        self.away = open_store(new_repo(tmp_path / "away"), self.past)
        self.me = acting(self.here, lifecycle.start(self.here, CallerClaims(), name="Curie"))

    def planck(self, identity: str | None = None) -> SessionResult:
        """Planck starts in the other clone, and this one knows it."""
        started = lifecycle.start(self.there, CallerClaims(), name="Planck", agent_identity=identity)
        carry(self.here, self.there)
        return started

    def claim(self) -> SessionResult:
        """A session that says that it has been Planck for 46 hours arrives here."""
        started = lifecycle.start(self.away, CallerClaims(), name="Planck")
        carry(self.here, self.away)
        return started

    def goes_on(self, other: SessionResult, number: int = 1) -> None:
        """The claimant says something now, and that arrives."""
        self.past.value = self.clock.value
        say(self.away, acting(self.away, other), number)
        carry(self.here, self.away)

    def send(self, to: str = "Planck") -> signals.Sent:
        return signals.send(self.here, self.me, "Mind the tabs", to=[to])


@pytest.fixture
def desk(tmp_path: Path, repo: Path) -> Desk:
    return Desk(tmp_path, repo)


def recipients(sent: signals.Sent) -> object:
    return sent.signal["recipients"]


def test_a_name_that_was_written_to_keeps_its_holder(desk: Desk) -> None:
    """With a warning that names the other one; the log still shows the name as every clone shows it."""
    planck = desk.planck()
    assert recipients(desk.send()) == [planck.session_id]
    other = desk.claim()
    sent = desk.send("planck")

    assert (recipients(sent), sent.resolved[0]["resolved_by"]) == ([planck.session_id], "folded")
    assert any(other.session_id in each and "also claims the name" in each for each in sent.warnings)
    shown = {each["session_id"]: each["display_name"] for each in roster.roster(desk.here, all=True).sessions}
    assert (shown[other.session_id], shown[planck.session_id]) == ("Planck", "Planck-2")
    assert recipients(desk.send("Planck-2")) == [planck.session_id]
    assert recipients(desk.send(other.session_id)) == [other.session_id]


def test_a_name_that_was_never_used_here_is_what_the_log_says(desk: Desk) -> None:
    """There is nothing to keep."""
    desk.planck()
    other = desk.claim()
    assert recipients(desk.send()) == [other.session_id]


def test_a_name_that_was_started_here_is_its_sessions(desk: Desk) -> None:
    """Also for `--as`, and after it was changed: the former name is free again."""
    mine = lifecycle.start(desk.here, CallerClaims(), name="Planck")
    other = desk.claim()
    assert recipients(desk.send()) == [mine.session_id]
    found = caller.find(desk.here, CallerClaims(as_="Planck"))
    assert found and found.session_id == mine.session_id
    assert found.remark and other.session_id in found.remark

    lifecycle.change(desk.here, acting(desk.here, mine), name="Bohr")
    assert recipients(desk.send()) == [other.session_id]
    assert recipients(desk.send("Bohr")) == [mine.session_id]


def test_acting_under_a_name_pins_it(desk: Desk) -> None:
    """`--as Planck` means that session from then on."""
    planck = desk.planck()
    assert caller.find(desk.here, CallerClaims(as_="Planck"))
    desk.claim()
    found = caller.find(desk.here, CallerClaims(as_="Planck"))
    assert found and found.session_id == planck.session_id


@pytest.mark.usefixtures("commits")
@pytest.mark.parametrize("ended", [True, False])
def test_when_the_holder_is_gone_nobody_is_chosen(desk: Desk, ended: bool) -> None:
    """Both are named, and nothing is written, until two days after the holder's last line."""
    planck = desk.planck()
    desk.send()
    if ended:
        lifecycle.end(desk.there, acting(desk.there, planck))
        carry(desk.here, desk.there)
    other = desk.claim()
    desk.clock.forward(25 * HOUR)
    desk.goes_on(other)
    before = desk.here.git.tip("refs/gitmem/log")
    with pytest.raises(UsageError) as caught:
        desk.send()
    assert (caught.value.status, caught.value.code) == (2, "ambiguous-recipient")
    assert planck.session_id in caught.value.message and other.session_id in caught.value.message
    assert [each.partition(" ")[0] for each in caught.value.suggestions] == [
        planck.session_id,
        other.session_id,
    ]
    assert desk.here.git.tip("refs/gitmem/log") == before
    with pytest.raises(UsageError) as refused:
        caller.find(desk.here, CallerClaims(as_="Planck"))
    assert refused.value.code == "which-session"

    desk.clock.forward(24 * HOUR)
    desk.goes_on(other, 2)
    assert recipients(desk.send()) == [other.session_id]


def test_a_holder_that_changed_its_name_is_not_taken_for_it(desk: Desk) -> None:
    """Whether it or a forged line said so: who means the name must say whom."""
    planck = desk.planck()
    desk.send()
    lifecycle.change(desk.there, acting(desk.there, planck), name="Noether")
    carry(desk.here, desk.there)
    with pytest.raises(UsageError) as caught:
        desk.send()
    assert caught.value.code == "unknown-recipient"  # nobody claims it
    desk.claim()
    with pytest.raises(UsageError) as caught:
        desk.send()
    assert caught.value.code == "ambiguous-recipient" and "is now called Noether" in caught.value.message


def test_a_pin_is_of_the_identity_where_there_is_one(desk: Desk) -> None:
    """A later session of the same agent may have the name."""
    first = desk.planck(IDENTITY)
    desk.send()
    lifecycle.end(desk.there, acting(desk.there, first))
    lifecycle.start(desk.there, CallerClaims(), name="Planck", agent_identity=IDENTITY)
    carry(desk.here, desk.there)
    desk.claim()
    assert recipients(desk.send()) == [IDENTITY]


def test_a_name_of_this_clone_is_no_later_session_of_its_agent_elsewhere(desk: Desk) -> None:
    """Anybody can write one that takes name and identity, at any time: who types the name acts as its own session."""
    mine = lifecycle.start(desk.here, CallerClaims(), name="Planck", agent_identity=IDENTITY)
    desk.past.value = desk.clock.value + DAY
    lifecycle.start(desk.away, CallerClaims(), name="Planck", agent_identity=IDENTITY)
    carry(desk.here, desk.away)
    found = caller.find(desk.here, CallerClaims(as_="Planck"))
    assert found and found.session_id == mine.session_id


@pytest.mark.parametrize("as_", ["address", "client id"])
def test_no_other_way_leads_to_who_claims_a_pinned_name(desk: Desk, as_: str) -> None:
    """A client's id and a sender's address may be any text, also a name."""
    planck = desk.planck()
    desk.send()
    if as_ == "client id":
        lifecycle.start(desk.away, CallerClaims(client_session=("CODEX_THREAD_ID", "Planck")), name="Bohr")
    else:
        say(desk.away, Caller("Planck", "Planck <planck@example.org>", "as"))
    carry(desk.here, desk.away)
    sent = desk.send()
    assert recipients(sent) == [planck.session_id]


def test_pins_change_nothing_that_others_see(desk: Desk) -> None:
    """Without the files the answers are the log's again."""
    desk.planck()
    desk.send()
    other = desk.claim()
    before = roster.roster(desk.here).as_json()
    for file in (Path(desk.here.repo.state) / names.PINS).iterdir():
        file.unlink()
    assert roster.roster(desk.here).as_json() == before
    assert recipients(desk.send()) == [other.session_id]
    assert inbox.count(desk.away, acting(desk.away, other)).unread == 0  # it has not arrived there yet


@pytest.mark.parametrize("content", [b"", b"Planck\n", b"\xff\n\n\n", b"Bohr\nsess-1\n\n", b"x" * 9000])
def test_a_pin_that_cannot_be_read_is_ignored(desk: Desk, content: bytes) -> None:
    """Torn, foreign, or of another name: the log decides, and the next use writes it anew."""
    planck = desk.planck()
    desk.send()
    (file,) = [
        each for each in (Path(desk.here.repo.state) / "pins").iterdir() if b"Planck" in each.read_bytes()
    ]
    file.write_bytes(content)
    assert recipients(desk.send()) == [planck.session_id]
    assert file.read_bytes().startswith(b"Planck\nsess-")


def test_a_folder_that_cannot_be_written_stops_no_signal(desk: Desk) -> None:
    """A file where the folder should be."""
    planck = desk.planck()
    folder = Path(desk.here.repo.state) / "pins"
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    assert recipients(desk.send()) == [planck.session_id]


def test_a_pin_of_a_session_that_the_log_lacks_says_nothing(desk: Desk) -> None:
    """After a batch that came to nothing, or a log that was rewound."""
    planck = desk.planck()
    names.note_pin(desk.here, "Planck", "sess-unknown0000", None)
    assert addressing.resolve(desk.here, ["Planck"])[0].address == planck.session_id
    assert desk.clock.value - START < DAY


# The names that ship.


def test_there_are_enough() -> None:
    """A repository with many agents does not come to `-2` soon."""
    assert len(names.POOL) >= 300


def test_no_two_are_within_two_edits() -> None:
    """A name with two typos is still nearest to itself."""
    near = [
        (a, b)
        for a, b in combinations(names.POOL, 2)
        if Levenshtein.distance(a.lower(), b.lower(), score_cutoff=2) <= 2
    ]

    assert near == []


def test_they_are_sorted_and_unique() -> None:
    """A new name has one place to go."""
    assert list(names.POOL) == sorted(set(names.POOL))


def test_they_are_easily_typed() -> None:
    """Three to ten ASCII letters, the first one a capital: no quoting, no look-alikes."""
    odd = [name for name in names.POOL if not (name.isascii() and name.isalpha() and 3 <= len(name) <= 10)]

    assert odd == []
    assert [name for name in names.POOL if not name[0].isupper()] == []
