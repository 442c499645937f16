"""Addressing: whatever is typed, a signal goes to exactly those who were meant, or nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.log.lines import CommitMessage
from gitmem.records.record_types import SignalFields

from .. import templates
from ..conftest import Git
from .conftest import Desk, Said, check_next, check_text, nothing_written, persons_desk, refs
from .faults import open_store


@pytest.fixture
def planck(desk: Desk) -> str:
    """The sender; Curie, who works on WU-7 in lane `pricing`, is there as well."""

    def make(root: Path) -> str:
        desk = persons_desk(root / "repo")
        desk.start("Curie", "--wu", "WU-7", "--lane", "pricing")
        return desk.start("Planck")

    return templates.copy("planck-and-curie", desk.repo.parent, make)


def _refused(desk: Desk, session: str, *args: str, code: str) -> Said:
    """A write that is refused in both forms, and wrote nothing."""
    with nothing_written(desk.repo):
        said = desk("signal", "for your eyes", *args, "--json", session=session)
        text = desk("signal", "for your eyes", *args, session=session)
    assert (said.status, said.error["code"]) == (2, code), said
    assert "nothing was written" in said.error["message"].lower()
    assert text.status == 2 and text.out == ""
    check_text(text)
    check_next(said.json["next"])
    assert len(said.error["suggestions"]) <= 3
    return said


BLANK = " \n\t"
NOBODY = [
    ("", "empty-recipient"),
    (" ", "empty-recipient"),
    (",", "empty-recipient"),
    ("Curie,", "empty-recipient"),
    (",Curie", "empty-recipient"),
    ("Curie,,Planck", "empty-recipient"),
    ("Nobody", "unknown-recipient"),
    ("Curie,Nobody", "unknown-recipient"),
    ("Nobody,Curie", "unknown-recipient"),
    ("all", "unknown-recipient"),
    ("*", "unknown-recipient"),
    ("@Curie", "unknown-recipient"),
    ("Curi", "unknown-recipient"),
    ("Currie", "unknown-recipient"),
    ("test:worker:curi", "unknown-recipient"),
    ("worker", "unknown-recipient"),
    ("WU-7", "unknown-recipient"),
    ("pricing", "unknown-recipient"),
    ("sess-", "unknown-recipient"),
    ("sess-zzzzzz", "unknown-recipient"),
    ("Сurie", "unknown-recipient"),  # the first letter is Cyrillic
    ("Cu\u202erie", "unknown-recipient"),
    ("Curie\u200b", "unknown-recipient"),
    ("--broadcast", "unknown-recipient"),
    ("' OR 1=1 --", "unknown-recipient"),
    ("x" * 100_000, "unknown-recipient"),
]


def test_who_is_not_known_gets_nothing(desk: Desk, planck: str, subtests: pytest.Subtests) -> None:
    """An empty, unknown, near or look-alike name writes nothing: never a broadcast, never somebody else."""
    for to, code in NOBODY:
        with subtests.test(ascii(to)[:30]):
            said = _refused(desk, planck, f"--to={to}", code=code)
            assert len(said.raw) < 4000


def test_a_list_resolves_whole_or_not_at_all(desk: Desk, planck: str) -> None:
    """Of several --to and comma lists every part must resolve."""
    _refused(desk, planck, "--to", "Curie", "--to", "Nobody", code="unknown-recipient")
    sent = desk.send(planck, "hi", "--to", "Curie, test:worker:curie", "--to", "curie")
    assert sent["signal"]["recipients"] == ["test:worker:curie"]


def test_a_typo_gets_suggestions_that_say_who_it_is(desk: Desk, planck: str) -> None:
    """A near name comes with role, worktree and when it was seen, so that identity decides and not spelling."""
    said = _refused(desk, planck, "--to", "Curei", code="unknown-recipient")
    (first, *_) = said.error["suggestions"]
    for word in ("Curie", "test:worker:curie", "in repo", "on WU-7", "live, seen "):
        assert word in first
    assert "gitmem roster Curei" in said.json["next"]
    assert _refused(desk, planck, "--to", "Xyzzy", code="unknown-recipient").json["next"] == ["gitmem roster"]


def test_look_alikes_are_named_as_such(desk: Desk, planck: str) -> None:
    """A name in mixed scripts is refused in words that show what it is."""
    said = _refused(desk, planck, "--to", "Сurie", code="unknown-recipient")
    assert "\\u0421urie" in said.error["message"]
    assert "several scripts" in said.error["message"]


def test_an_identity_that_ends_in_another_number_is_another_one(desk: Desk, planck: str) -> None:
    """host8 is no spelling of host7, not for a session's name either."""
    desk.start("Host7", "--agent-identity", "codex:implementer:host7")
    for to in ("codex:implementer:host8", "host8", "Host8", "Host-7"):
        said = _refused(desk, planck, "--to", to, code="unknown-recipient")
    assert said.error["suggestions"]
    peek = desk("inbox", "--for", "codex:implementer:host8", "--json", session=planck)
    assert peek.status in (0, 2)


def test_case_dashes_and_width_do_not_matter(desk: Desk, planck: str) -> None:
    """A name is found in any case, with `_` or space for `-`, and in full-width letters, and says `folded`."""
    desk.start("Ada-Love", "--agent-identity", "a:b:love")
    for to in ("ada-love", "ADA_LOVE", "Ada Love", "Ａｄａ-Love"):
        sent = desk.send(planck, "hi", "--to", to)
        assert [(each["address"], each["resolved_by"]) for each in sent["resolved"]] == [
            ("a:b:love", "folded")
        ]


def test_a_session_id_prefix_needs_six_characters(desk: Desk, planck: str) -> None:
    """Six characters after the dash are the least for a write."""
    curie = desk.start("Third")
    assert (
        desk.send(planck, "hi", "--to", curie[: len("sess-") + 6])["resolved"][0]["resolved_by"] == "prefix"
    )
    _refused(desk, planck, "--to", curie[: len("sess-") + 5], code="unknown-recipient")


def test_a_name_that_two_hold_is_ambiguous(tmp_path: Path, desk: Desk, git: Git) -> None:
    """Where two clones gave one name away, the second shows as `-2`; each reaches whom it names."""
    other = tmp_path / "other"
    hub = tmp_path / "hub.git"
    git("init", "--quiet", "--bare", str(hub))
    git("remote", "add", "origin", str(hub), cwd=desk.repo)
    git("push", "--quiet", "origin", "HEAD:main", cwd=desk.repo)
    git("clone", "--quiet", "--branch", "main", str(hub), str(other))
    first = desk.start("Curie", "--agent-identity", "a:b:one")
    second = desk.start("Curie", "--agent-identity", "a:b:two", cwd=other)
    assert desk("sync", "--publish").status == 0
    assert desk("sync", "--publish", cwd=other).status == 0
    assert desk("sync").status == 0
    for where in (desk.repo, other):
        rows = desk("roster", "--json", cwd=where).json["sessions"]
        assert {row["session_id"]: row["display_name"] for row in rows} == {first: "Curie", second: "Curie-2"}
    planck = desk.start("Planck")
    assert desk.send(planck, "hi", "--to", "Curie")["signal"]["recipients"] == ["a:b:one"]
    assert desk.send(planck, "hi", "--to", "Curie-2")["signal"]["recipients"] == ["a:b:two"]


def test_a_name_in_use_is_not_given_again(desk: Desk, planck: str) -> None:
    """--name of a live session is refused, in any spelling, with three that are free."""
    for name in ("Curie", "CURIE", "curie"):
        with nothing_written(desk.repo):
            said = desk("session", "start", "--name", name, "--json")
        assert (said.status, said.error["code"]) == (2, "name-in-use")
        assert len(said.error["suggestions"]) == 3


def test_the_name_of_an_ended_session_is_free_and_reaches_nobody(desk: Desk, planck: str) -> None:
    """After its end a name writes to nobody; the identity behind it is suggested, and takes signals with a remark."""
    bohr = desk.start("Bohr")
    assert desk("session", "end", session=bohr).status == 0
    said = _refused(desk, planck, "--to", "Bohr", code="unknown-recipient")
    assert "test:worker:bohr" in said.error["suggestions"][0]
    assert "ended" in said.error["suggestions"][0]
    sent = desk.send(planck, "hi", "--to", "test:worker:bohr")
    assert any("have ended" in each for each in sent["warnings"])
    sent = desk.send(planck, "hi", "--to", bohr)
    assert sent["signal"]["recipients"] == ["test:worker:bohr"]
    again = desk.start("Niels", "--agent-identity", "test:worker:bohr")
    assert desk("inbox", "--count", session=again).out == "2\n"


@pytest.mark.parametrize("to", ["claude:reviewer:lab", "human:boss@example.org"])
def test_an_identity_that_was_never_seen_needs_a_word(desk: Desk, planck: str, to: str) -> None:
    """Who the log has never seen is refused, unless --allow-unseen says that this is meant; and is told later."""
    said = _refused(desk, planck, "--to", to, code="unknown-recipient")
    assert "--allow-unseen" in said.error["hint"]
    sent = desk.send(planck, "hi", "--to", to, "--allow-unseen")
    assert sent["signal"]["recipients"] == [to]
    assert any("is not in this log yet" in each for each in sent["warnings"])


@pytest.mark.parametrize(
    "to", ["Nobody", "a:b", "a:b:c:d", "a::c", "human:", "human:x", "a b:c:d", "sess-abcdefgh"]
)
def test_allow_unseen_is_for_identities(desk: Desk, planck: str, to: str) -> None:
    """--allow-unseen does not make a recipient of a name, a session id or a broken identity."""
    _refused(desk, planck, "--to", to, "--allow-unseen", code="unknown-recipient")


def test_one_s_own_name(desk: Desk, planck: str) -> None:
    """A signal to oneself alone is recorded with a remark, and never comes back as unread."""
    for to in ("Planck", "test:worker:planck", planck):
        sent = desk.send(planck, "note to self", "--to", to)
        assert sent["signal"]["recipients"] == ["test:worker:planck"]
        assert any("You are one of the recipients" in each for each in sent["warnings"])
    assert desk("inbox", "--count", session=planck).out == "0\n"


def test_a_person_is_addressed_by_mail(desk: Desk, planck: str) -> None:
    """This clone's user is known without having written anything, and reads it as a person."""
    desk.send(planck, "hi", "--to", "human:person@example.org")
    said = desk("--as", "human:person@example.org", "inbox", "--json")
    assert [each["message"] for each in said.json["signals"]] == ["hi"]


# Replies and threads


@pytest.fixture
def crowd(desk: Desk, planck: str) -> tuple[str, str]:
    """Two signals whose ids share nine characters."""
    store = open_store(desk.repo)
    for end in ("2222", "3333"):
        fields: SignalFields = {
            "signal_id": f"sig-abcdefgh{end}", "sender_identity": "test:worker:planck", "sender_session": planck,
            "recipients": ["test:worker:curie"], "thread_id": f"thread-bcdefghj{end}", "message": end,
        }  # fmt: skip
        story = CommitMessage("Planck <test:worker:planck@gitmem>", end)
        store.record([store.line("signal", fields)], story)
    store.close()
    return "sig-abcdefgh2222", "sig-abcdefgh3333"


def test_an_ambiguous_prefix_answers_nothing(desk: Desk, planck: str, crowd: tuple[str, str]) -> None:
    """A prefix of two ids is refused with both, for --reply-to, reply, thread and show."""
    said = _refused(desk, planck, "--reply-to", "sig-abcdefgh", code="ambiguous-id")
    assert said.error["suggestions"] == list(crowd)
    for command in (["reply", "sig-abcdefgh", "yes"], ["thread", "sig-abcdefgh"], ["show", "sig-abcdefgh"]):
        with nothing_written(desk.repo):
            said = desk(*command, "--json", session=planck)
        assert (said.status, said.error["code"]) == (2, "ambiguous-id")
        assert said.error["suggestions"] == list(crowd)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_short_prefix_is_not_enough_to_write(desk: Desk, planck: str, length: int) -> None:
    """Fewer than six characters after the dash name nothing where something is written; to look four do, as in git."""
    root = desk.send(planck, "one", "--to", "Curie")["signal"]["signal_id"]
    short = root[: len("sig-") + length]
    with nothing_written(desk.repo):
        said = desk("reply", short, "yes", "--agree", "--json", session=planck)
    assert (said.status, said.error["code"]) == (2, "short-id")
    assert root in said.error["suggestions"]
    if length >= 4:
        assert desk("show", short, "--json").json["record"]["signal_id"] == root
    assert desk("reply", root[: len("sig-") + 6], "more", session=planck).status == 0


@pytest.mark.parametrize(
    "args",
    [
        ["reply", "", "yes", "--agree"],
        ["signal", "hi", "--reply-to", ""],
        ["signal", "hi", "--thread", ""],
        ["signal", "hi", "--idempotency-key", ""],
        ["signal", "hi", "--to", "Curie", "--reply-to="],
    ],
    ids=" ".join,
)
def test_an_empty_id_is_never_a_broadcast(desk: Desk, planck: str, args: list[str]) -> None:
    """A script's variable that is not set must not send an answer to everybody."""
    with nothing_written(desk.repo):
        said = desk(*args, "--json", session=planck)
    assert (said.status, said.error["code"]) == (2, "empty-id")
    assert "Nothing was written" in said.error["message"]


@pytest.mark.parametrize(
    "id", ["sig-zzzzzzzzzzzz", "thread-zzzzzzzzzzzz", "nonsense", "%", "sig-%%%%%%%%", "sess-abcdefgh"]
)
def test_an_unknown_id_is_refused(desk: Desk, planck: str, id: str) -> None:
    """What is in no log can't be answered, shown, or converge."""
    desk.send(planck, "one", "--to", "Curie")
    for command in (
        ["reply", id, "yes"],
        ["signal", "yes", "--reply-to", id],
        ["converged", id],
        ["thread", id],
        ["show", id],
    ):
        with nothing_written(desk.repo):
            said = desk(*command, "--json", session=planck)
        assert (said.status, said.error["code"]) == (2, "unknown-id"), said
        check_next(said.json["next"])


def test_show_shows_a_memory_node_as_well(desk: Desk, planck: str) -> None:
    """`gitmem log` prints ids of all kinds."""
    node = desk("mem", "create", "The parser drops tabs", "--json", session=planck).json["node"]["id"]
    shown = desk("show", node, session=planck)
    assert shown.status == 0
    assert "The parser drops tabs" in shown.out


def test_a_thread_id_is_no_signal_to_answer(desk: Desk, planck: str) -> None:
    """--reply-to a thread names the signals' command instead of guessing one."""
    thread = desk.send(planck, "one", "--to", "Curie")["signal"]["thread_id"]
    with nothing_written(desk.repo):
        said = desk("reply", thread, "yes", "--json", session=planck)
    assert (said.status, said.error["code"]) == (2, "not-a-signal")
    assert said.json["next"] == [f"gitmem thread {thread}"]


def test_broadcast_and_to_exclude_each_other(desk: Desk, planck: str) -> None:
    """Everybody, or somebody."""
    _refused(desk, planck, "--broadcast", "--to", "Curie", code="usage")


def test_decisions_exclude_each_other(desk: Desk, planck: str) -> None:
    """An answer is one of AGREE, REJECT and COUNTER."""
    root = desk.send(planck, "one", "--to", "Curie")["signal"]["signal_id"]
    with nothing_written(desk.repo):
        said = desk("reply", root, "hm", "--agree", "--reject", "--json", session=planck)
    assert said.status == 2


def test_an_unknown_intent_is_refused(desk: Desk, planck: str) -> None:
    """An intent may be in any case, and must be one of the five."""
    _refused(desk, planck, "--to", "Curie", "--intent", "approve", code="bad-intent")
    assert desk.send(planck, "hi", "--to", "Curie", "--intent", "pRoPoSe")["signal"]["intent"] == "PROPOSE"


def test_an_unknown_intent_of_a_filter_is_refused(desk: Desk, planck: str) -> None:
    """As a filter it would hide all messages, and the answer "Nothing new" would be believed."""
    said = desk("inbox", "--intent", "info,approve", "--json", session=planck)
    assert (said.status, said.json["error"]["code"]) == (2, "bad-intent")
    assert desk("inbox", "--intent", "info", "--json", session=planck).status == 0


@pytest.mark.parametrize(
    "sends",
    [
        ("signal", BLANK),
        ("signal", BLANK, "--to", "Planck"),
        ("delegate", BLANK, "--to", "Planck", "--role", "tester"),
        ("call", "Curie", BLANK, "--no-wait"),
    ],
    ids=" ".join,
)
def test_a_message_of_white_space_is_not_sent(desk: Desk, planck: str, sends: tuple[str, ...]) -> None:
    """An unset variable in quotes gives one; without a recipient it would go to everybody."""
    with nothing_written(desk.repo):
        said = desk(*sends, "--json", session=planck)
    assert (said.status, said.json["error"]["code"]) == (2, "empty-message")


def test_nobody_agrees_to_a_broadcast(desk: Desk, planck: str) -> None:
    """A root without recipients has nobody who could agree: exit 1, never 0."""
    root = desk.send(planck, "all of you", "--broadcast")["signal"]["signal_id"]
    said = desk("converged", root, "--json")
    assert (said.status, said.json["converged"]) == (1, False)
    check_next(said.json["next"])


# Who calls


@pytest.mark.parametrize(
    "who", ["", "Nobody", "Curi", "curie", "sess-zzzzzz", "sess-", "a:b:c", "Сurie", "human:x@y"]
)
def test_as_must_be_exact(desk: Desk, planck: str, who: str) -> None:
    """Nobody acts as somebody whom they only nearly named."""
    with nothing_written(desk.repo):
        for command in (["signal", "hi"], ["inbox"], ["session", "end"]):
            said = desk("--as", who, *command, "--json")
            assert (said.status, said.error["code"]) == (2, "unknown-session"), said


def test_a_misspelt_caller_is_told_who_could_be_meant(desk: Desk, planck: str) -> None:
    """With the suggestions of `--to`, and nobody acts; once the session has ended the error says so."""
    said, to = (
        desk("--as", "Plank", "signal", "hi", "--json"),
        desk("signal", "hi", "--to", "Plank", "--json", session=planck),
    )
    assert said.error["suggestions"] == to.error["suggestions"] != []
    assert said.error["suggestions"][0].startswith("Planck (")
    assert "Did you mean one of these?" in said.error["hint"] and said.error["message"].endswith(
        "Plank. Nothing was written."
    )
    assert desk("session", "end", session=planck).status == 0
    assert (
        f"the session of that name, {planck}, ended"
        in desk("--as", "Planck", "signal", "hi", "--json").error["message"]
    )


@pytest.mark.parametrize("value", ["nonsense", "sess-zzzzzzzzzzzz", "Planck", "../../etc", "sess-' OR 1=1"])
def test_an_unknown_session_variable_acts_as_nobody(desk: Desk, planck: str, value: str) -> None:
    """An unknown GITMEM_SESSION is refused where somebody must act, and does not stop a look."""
    with nothing_written(desk.repo):
        for command in (["signal", "hi"], ["inbox"], ["whoami"], ["session", "set", "--wu", "WU-1"]):
            said = desk(*command, "--json", session=value)
            assert (said.status, said.error["code"]) == (2, "unknown-session"), said
    for command in (["roster"], ["log"], ["roster"], ["inbox", "--for", "Curie"]):
        assert desk(*command, session=value).status == 0


def test_an_ended_session_acts_no_more(desk: Desk, planck: str) -> None:
    """The variable of a session that has ended is refused with the way to a new one."""
    assert desk("session", "end", session=planck).status == 0
    with nothing_written(desk.repo):
        said = desk("signal", "hi", "--json", session=planck)
    assert (said.status, said.error["code"]) == (2, "ended-session")
    assert "gitmem session start" in said.json["next"]


def test_several_sessions_in_a_worktree_are_not_guessed(desk: Desk, planck: str) -> None:
    """With two live sessions here and nothing that says who calls: exit 2 with the list."""
    with nothing_written(desk.repo):
        said = desk("signal", "hi", "--json")
    assert (said.status, said.error["code"]) == (2, "which-session")
    assert len(said.error["suggestions"]) == 2


# Whose mail it is


def test_looking_into_another_s_inbox_marks_nothing(desk: Desk, planck: str) -> None:
    """--for somebody else is a peek that says so; a name that is only near is refused."""
    desk.send(planck, "hi", "--to", "Curie")
    for who in ("Curie", "test:worker:curie"):
        before = refs(desk.repo), os.listdir(desk.repo / ".git" / "gitmem")
        said = desk("inbox", "--for", who, session=planck)
        assert said.status == 0 and "Nothing is marked" in said.out and "| hi" in said.out
        assert before == (refs(desk.repo), os.listdir(desk.repo / ".git" / "gitmem"))
    curie = next(
        row["session_id"]
        for row in desk("roster", "--json").json["sessions"]
        if row["display_name"] == "Curie"
    )
    assert desk("inbox", "--count", session=curie).out == "1\n"


def test_the_inbox_of_nobody_is_refused(desk: Desk, planck: str) -> None:
    """--for an unknown or empty reader is a wrong question, not an empty inbox."""
    for who in ("", "Zzzzzzzzzzzz", "sess-zzzzzzzz", "Curei", "Plank", "worker"):
        said = desk("inbox", "--for", who, "--json", session=planck)
        assert (said.status, said.error["code"]) == (2, "unknown-recipient")
