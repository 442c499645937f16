"""M of N: `--need` recipients suffice, those of `--veto` have to agree in any case; every place says the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitmem.repo import find

from ..clones import agree, git
from ..signing import own_key
from .conftest import Run, Said
from .test_agreement import Start, Talk, write

WHO = ("Ada", "Bohr", "Curie", "Dirac")
TO = "Bohr,Curie,Dirac"


@pytest.fixture
def talk(run: Run, start: Start, repo: Path) -> Talk:
    own_key(repo)
    return Talk(run, start, *WHO)


def propose(talk: Talk, *more: str, to: str = TO) -> str:
    return talk.proposes("Ada", "Use vim", to, *more)


def test_two_of_three_are_enough_and_a_rejection_stops_nothing(talk: Talk) -> None:
    """Text and JSON say how many are missing; then nobody owes an answer any more, though one has not seen it."""
    root = propose(talk, "--need", "2", "--wu", "WU-7")
    assert "needs 2 to agree" in talk("Bohr", "inbox").out
    talk.agrees("Bohr", root)
    talk.says("Curie", "reply", root, "no", "--reject")
    said = talk("Ada", "converged", root)
    assert (said.status, '1 of 3 agreed, needs 2: "Use vim"' in said.out) == (1, True), said
    assert f"gitmem converged {root} --wait 60s" in said.out + said.err
    assert talk.converged(root)["quorum"] == {"need": 2, "veto": [], "agreed": 1, "of": 3, "waits_for": []}
    talk("Dirac", "inbox")
    assert talk("Dirac", "gate", "--wu", "WU-7").status == 1
    talk.agrees("Dirac", root)

    found = talk.converged(root)
    assert found["converged"] and found["rejected"] == ["test:worker:curie"]
    assert '2 of 3 agreed on "Use vim"' in talk.run("converged", root).out
    assert "(2 of 3 agreed, needs 2)" in talk.run("thread", root).out
    assert talk("Curie", "gate", "--wu", "WU-7").status == 0


def test_whoever_is_not_needed_any_more_owes_nothing(talk: Talk) -> None:
    """The roster, the gate and the inbox stop asking; the veto is asked until it has agreed."""
    root = propose(talk, "--need", "1", "--veto", "Dirac", "--wu", "WU-7")
    for each in WHO[1:]:
        talk(each, "inbox")
    talk.agrees("Bohr", root)
    said = talk("Ada", "converged", root)
    assert (said.status, "1 of 3 agreed, needs 1; waits for Dirac (veto)" in said.out) == (1, True), said
    waits = [
        (each["owes_name"], each["id"]) for each in talk("Ada", "roster", "--json").json["waits"]["rows"]
    ]
    assert waits == [("Dirac", root)]
    assert [talk(each, "gate", "--wu", "WU-7").status for each in WHO[1:]] == [0, 0, 1]
    talk.says("Dirac", "reply", root, "no", "--reject")
    refused = talk.converged(root)
    assert refused["refused"] and not any("--wait" in each for each in refused["next"])
    assert "1 of 3 agreed, needs 1; rejected by Dirac (veto): " in talk("Ada", "converged", root).out
    talk.agrees("Dirac", root)

    assert talk.converged(root)["converged"]


def test_a_veto_is_asked_although_to_does_not_name_it(talk: Talk) -> None:
    sent = talk(
        "Ada",
        "signal",
        "Use vim",
        "--to",
        "Bohr",
        "--veto",
        "Curie",
        "--need",
        "1",
        "--intent",
        "propose",
        "--json",
    ).json
    assert [each.partition("~")[0] for each in sent["signal"]["recipients"]] == [
        "test:worker:bohr",
        "test:worker:curie",
    ]
    root = sent["signal"]["signal_id"]
    talk.agrees("Bohr", root)
    assert not talk.converged(root)["converged"]
    talk.agrees("Curie", root)

    assert talk.converged(root)["converged"]


def test_a_counter_that_too_few_accept_leaves_what_was_agreed(talk: Talk) -> None:
    """And one that enough accept is agreed on only with who proposed first."""
    root = propose(talk, "--need", "2")
    emacs = talk.counters("Bohr", root, "Use emacs")
    for each in ("Curie", "Dirac"):
        talk.agrees(each, emacs)
    said = talk("Ada", "converged", emacs)
    assert (said.status, "2 of 3 agreed, needs 2; waits for Ada" in said.out) == (1, True), said
    talk.agrees("Ada", emacs)
    assert talk.converged(emacs)["agreed_on"]["signal_id"] == emacs
    nano = talk.counters("Dirac", emacs, "Use nano")

    found = talk.converged(emacs)
    assert (found["converged"], [each["signal_id"] for each in found["in_force"]]) == (True, [emacs])
    assert talk.converged(nano)["replaced"]


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (["--to", TO, "--need", "2"], "--need and --veto are for a PROPOSE that begins a thread, and this is INFO."),
        (["--to", TO, "--need", "4", "--intent", "propose"], "--need 4 is more than can agree: the proposal asks 3, without you."),
        (["--to", "Bohr,Ada", "--need", "2", "--intent", "propose"], "--need 2 is more than can agree: the proposal asks 1, without you."),
        (["--to", TO, "--need", "0", "--intent", "propose"], "--need must be a number from 1 to 9999, not '0'."),
        (["--to", TO, "--need", "-1", "--intent", "propose"], "--need must be a number from 1 to 9999, not '-1'."),
        (["--to", TO, "--need", "", "--intent", "propose"], "--need must be a number from 1 to 9999, not ''."),
        (["--to", TO, "--need", "9" * 5000, "--intent", "propose"], "--need must be a number from 1 to 9999, not "),
        (["--broadcast", "--need", "1", "--intent", "propose"], "--need 1 counts those whom --to names, and nobody is named."),
        (["--need", "1", "--intent", "propose"], "--need 1 counts those whom --to names, and nobody is named."),
        (["--to", TO, "--veto", "Bohr", "--intent", "propose"], "--veto is for --need: without it nothing is agreed on until all agree."),
        (["--to", TO, "--need", "1", "--veto", "Ada", "--intent", "propose"], "--veto names you: "),
        (["--to", TO, "--need", "1", "--veto", "Nobody", "--intent", "propose"], "--veto"),
        (["--to", TO, "--need", "1", "--veto", ",", "--intent", "propose"], "--veto has an empty name."),
    ],
)  # fmt: skip
def test_what_is_no_quorum_is_refused_with_a_sentence(talk: Talk, words: list[str], because: str) -> None:
    before = talk.run("log", "--json").out
    said = talk("Ada", "signal", "Use vim", *words)

    assert said.status == 2 and because in said.err, said
    assert "Nothing was written" in said.err
    assert talk.run("log", "--json").out == before


def test_a_thread_that_exists_keeps_the_rule_of_its_root(talk: Talk) -> None:
    root = propose(talk)
    said = talk("Bohr", "signal", "Use emacs", "--reply-to", root, "--intent", "counter", "--need", "1")
    assert said.status == 2 and "this thread exists already" in said.err, said
    said = talk("Ada", "signal", "Use emacs", "--thread", root, "--intent", "propose", "--need", "1")
    assert said.status == 2 and "this thread exists already" in said.err, said


# What a peer may write: judged by the schema when it is read, or without effect.

IDS = [f"sig-{number:012}" for number in range(1, 6)]


def _line(**fields: Any) -> dict[str, Any]:
    return {"signal_id": IDS[0], "thread_id": "thread-000000000001", "intent": "PROPOSE", "message": "Use vim",
            "sender_identity": "test:worker:ada", "recipients": ["test:worker:bohr", "test:worker:curie"], **fields}  # fmt: skip


@pytest.mark.parametrize(
    "odd",
    [{"need": each} for each in (2, -1, 0, 1.5, True, "0", "01", "-1", " 1", "1\n", "²", "9" * 9, ["1"], {"n": 1}, 10**400)]
    + [{"need": "1", "veto": each} for each in ("test:worker:bohr", 1, [1], [None], [""], ["a b"], [["a"]], {"a": 1}, ["x" * 300])],
    ids=lambda odd: ascii(odd)[:50],
)  # fmt: skip
def test_a_line_with_a_malformed_quorum_is_no_signal(talk: Talk, repo: Path, odd: dict[str, Any]) -> None:
    """It is not read as a proposal of all, and not as one of fewer."""
    write(repo, [_line(**odd)])
    said = talk.run("converged", IDS[0])

    assert said.status == 2 and "Traceback" not in said.err
    assert talk.run("doctor").status in (0, 1)


@pytest.mark.parametrize(
    ("fields", "answers"),
    [
        ({"need": "3"}, ("bohr", "curie")),
        ({"need": "9999"}, ("bohr", "curie")),
        ({"need": "1", "veto": ["test:worker:nobody"]}, ("bohr", "curie")),
        ({"need": "1", "veto": [f"test:worker:{number}" for number in range(5_000)]}, ("bohr", "curie")),
        ({"need": "1", "intent": "INFO", "requires_ack": True}, ("bohr",)),
        ({"veto": ["test:worker:bohr"]}, ("bohr",)),
        ({"need": "2", "recipients": ["test:worker:bohr"] * 3}, ("bohr",)),
    ],
)
def test_an_impossible_quorum_is_never_agreed_on(
    talk: Talk, repo: Path, fields: dict[str, Any], answers: tuple[str, ...]
) -> None:
    """And fields where they mean nothing make no agreement easier."""
    write(repo, [_line(**fields)])
    for each in answers:
        talk.agrees(each.title(), IDS[0])

    said = talk.run("converged", IDS[0])
    assert said.status == 1 and len(said.out) < 4_000, said


def test_a_counter_with_a_quorum_of_its_own_changes_nothing(talk: Talk, repo: Path) -> None:
    root = propose(talk)
    counter = _line(
        signal_id=IDS[1], thread_id=f"thread-{root[4:]}", intent="COUNTER", sender_identity="test:worker:bohr", reply_to=root, need="1",
        recipients=["test:worker:ada", "test:worker:curie", "test:worker:dirac"], veto=["test:worker:ada"],
    )  # fmt: skip
    write(repo, [counter])
    for each in ("Ada", "Curie"):
        talk.agrees(each, IDS[1])

    assert talk.converged(IDS[1])["pending"] == ["test:worker:dirac"]


def test_one_agent_with_two_addresses_counts_once(talk: Talk, repo: Path) -> None:
    """A root of another program names a session and its agent: one AGREE is one."""
    bohr = talk.sessions["Bohr"]
    curie = "test:worker:curie"
    write(repo, [_line(need="2", recipients=["test:worker:bohr", bohr, curie], veto=[curie])])
    talk.agrees("Bohr", IDS[0])
    assert not talk.converged(IDS[0])["converged"]
    talk.agrees("Curie", IDS[0])

    assert talk.converged(IDS[0])["converged"]


@pytest.mark.deep
def test_three_clones_agree_though_one_is_offline(run: Run, tmp_path: Path, repo: Path) -> None:
    """The one that is away never says yes before it has what says so, and then all say the same."""
    hub, clones = tmp_path / "hub.git", {}
    git("clone", "--quiet", "--bare", str(repo), str(hub), cwd=tmp_path)
    for name in ("Ada", "Bohr", "Curie", "Dirac"):
        place = tmp_path / name.lower()
        git("clone", "--quiet", str(hub), str(place), cwd=tmp_path)
        agree(find(str(place)))
        started = run(
            "session",
            "start",
            "--name",
            name,
            "--agent-identity",
            f"test:worker:{name.lower()}",
            "--json",
            cwd=place,
        )
        clones[name] = place, started.json["session_id"]
    del clones["Dirac"]  # is known to the log, and never comes back

    def at(name: str, *words: str) -> Said:
        place, session = clones[name]
        return run(*words, session=session, cwd=place)

    def sync(*names: str) -> None:
        for each in names * 2:
            assert at(each, "sync").status == 0

    run("sync", cwd=tmp_path / "dirac")
    sync(*clones)
    words = ("--to", "Bohr,Curie,Dirac", "--intent", "propose", "--need", "2")
    root = at("Ada", "signal", "Use vim", *words, "-q").out.strip()
    strict = at("Ada", "signal", "Use emacs", *words, "--veto", "Dirac", "-q").out.strip()
    sync(*clones)
    asked = {name: [at(name, "converged", id).status for id in (root, strict)] for name in clones}
    assert list(asked.values()) == [[1, 1]] * 3
    for id in (root, strict):
        assert at("Bohr", "reply", id, "yes", "--agree").status == 0
    sync("Ada", "Bohr")
    assert [at(each, "converged", root).status for each in clones] == [1, 1, 1]
    for id in (root, strict):  # offline
        assert at("Curie", "reply", id, "yes", "--agree").status == 0
    assert [at(each, "converged", root).status for each in clones] == [1, 1, 1]
    sync(*clones)

    assert [at(each, "converged", root).status for each in clones] == [0, 0, 0]
    assert [at(each, "converged", strict).status for each in clones] == [1, 1, 1]
    assert "waits for Dirac (veto)" in at("Curie", "converged", strict).out
