"""An answer in the page is the person's alone, on exactly what the page has shown, and no other page can give one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gitmem.agents.caller import CallerClaims
from gitmem.calls.a2a_server import ServedLog
from gitmem.page.live_page import COOKIE, FORM_MOST, FORM_TOKEN, LivePage
from gitmem.page.page_data import collect

from .test_board_data import delegated, opened, start

HOST = "127.0.0.1:4810"
HOSTILE = ("</script><img src=x onerror=alert(1)>", "\u202e\x1b[31m\x00", "\ud800", " ", "x" * 60_000)


class Person:
    """A browser that has the link of a page, which answers as somebody."""

    def __init__(self, path: Path, who: str = "Noether") -> None:
        self.log = opened(path, minutes=30)
        claims = CallerClaims(as_=who)
        self.page = LivePage(ServedLog(self.log.store), lambda: collect(self.log.store, who=claims), claims)
        self.client = TestClient(self.page.application([HOST]), base_url=f"http://{HOST}")
        self.client.get(self.page.entry)
        self.headers: dict[str, str] = {"Origin": f"http://{HOST}"}
        self.look()

    def look(self) -> list[dict[str, Any]]:
        """Read the data; return what waits for the person."""
        answer = self.client.get(self.page.path + "data.json")
        self.headers[FORM_TOKEN] = answer.headers[FORM_TOKEN]
        self.data = answer.json()
        return [each for each in self.data["board"]["waits"] if each["yours"]]

    def post(self, row: dict[str, Any], way: str, words: str = "", **more: Any) -> tuple[int, str]:
        """Answer a row; return the status and the sentence."""
        form = {"do": way, "id": row["id"], "since": row["since"], "text": words, **more}
        headers = {**self.headers, "Content-Type": "application/json"}
        answer = self.client.post(self.page.path + "answer", content=json.dumps(form), headers=headers)
        error = answer.json().get("error", {})
        return answer.status_code, f"{error.get('message', '')} {' '.join(error.get('next', ()))}"

    def lines(self) -> int:
        """Return how many lines the log has."""
        with self.log.store.one_look():
            return int(self.log.store.db().execute("SELECT count(*) FROM line").fetchone()[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return start(tmp_path)


@pytest.fixture
def person(path: Path) -> Iterator[Person]:
    """Noether, who has been asked by Curie, as has Gauss."""
    with opened(path, "Curie", 1) as log:
        log.signals.send("Rename it?", to=["Noether", "Gauss"], intent="PROPOSE", wu="WU-1")
    found = Person(path)
    yield found
    found.log.close()


def test_an_answer_is_recorded_as_the_person_and_once(person: Person, path: Path) -> None:
    """A second tab that shows the same is told what became of it; a reply without a decision leaves the waiting as it is."""
    (row,) = person.look()
    assert row["ways"] == ["agree", "reject", "reply"]
    assert person.post(row, "reply", "Wait a moment")[0] == 200
    assert person.post(row, "agree", "Yes")[0] == 200

    status, said = person.post(row, "agree", "Yes")
    assert (status, "agree to" in said, "already" in said, "Nothing was written." in said) == (409, True, True, True)  # fmt: skip
    status, said = person.post(row, "reject", "No")
    assert (status, "does not wait for you as this page has shown it" in said) == (409, True)
    assert person.look() == []

    with opened(path, minutes=31) as log:
        shown = log.thread(row["thread"]).signals
        assert [(each["intent"], each["sender_name"]) for each in shown] == [
            ("PROPOSE", "Curie"),
            ("INFO", "Noether"),
            ("AGREE", "Noether"),
        ]
        assert not log.converged(row["id"]).converged  # nobody has answered for Gauss


def test_an_answer_to_a_proposal_that_another_one_has_replaced_is_refused(person: Person, path: Path) -> None:
    """It never lands on the new one, which the page has not shown."""
    (row,) = person.look()
    with opened(path, "Curie", 5) as log:
        new = log.signals.send("Delete it?", reply_to=row["id"], intent="PROPOSE").signal["signal_id"]
    before = person.lines()

    status, said = person.post(row, "agree", "Yes")

    assert (status, f"was replaced by {new}" in said) == (409, True)
    assert person.lines() == before
    assert [each["id"] for each in person.look()] == [new]
    assert (
        person.post({**row, "id": new}, "agree", "Yes")[0] == 409
    )  # since when it waits is that of another one


def test_no_other_page_and_nobody_without_the_link_can_answer(person: Person) -> None:
    """Not by a token of an earlier start, by a form, by DNS, by a page of another port, nor with a body that is too large."""
    (row,) = person.look()
    before, right = person.lines(), dict(person.headers)
    wrong = (
        (403, {FORM_TOKEN: ""}), (403, {FORM_TOKEN: "wrong"}), (403, {"Origin": "http://127.0.0.1:4811"}), (403, {"Origin": "null"}),
        (403, {"Origin": "http://localhost:4810"}), (403, {"Origin": f"https://{HOST}"}), (403, {"Host": "evil.example:4810", "Origin": "http://evil.example:4810"}),
        (401, {"Cookie": f"{COOKIE}=of-an-earlier-start"}),
    )  # fmt: skip
    for status, headers in wrong:
        person.headers = {**right, **headers}
        assert person.post(row, "agree", "Yes")[0] == status, headers
    person.headers = right
    assert person.post(row, "agree", "x" * FORM_MOST)[0] == 413
    send = person.client.post
    url, of_forms = person.page.path + "answer", {"Content-Type": "application/x-www-form-urlencoded"}
    assert (
        send(url, content=b"do=agree", headers={**right, **of_forms}).status_code == 200
    )  # in a body of JSON-RPC
    assert person.lines() == before
    person.client.cookies.clear()
    status, said = person.post(row, "agree", "Yes")
    assert (status, "the link that gitmem view --serve has printed" in said) == (401, True)
    assert person.lines() == before


def test_a_body_that_is_no_answer_and_hostile_words_are_refused_or_recorded_as_words(person: Person) -> None:
    """Each is answered with a sentence, and an id names exactly one thing."""
    (row,) = person.look()
    before, url = person.lines(), person.page.path + "answer"
    headers = {**person.headers, "Content-Type": "application/json"}
    for body in (b"", b"{", b"[]", b"1", b'{"do":"agree"}', b"\xff", b'{"do":1,"do":2}', b"[" * 50_000):
        assert person.client.post(url, content=body, headers=headers).status_code == 400, body[:20]
    assert person.post(row, "agree", more=1)[0] == 400
    for change in ({"do": "seal"}, {"do": "__class__"}, {"id": row["id"][:-1] + "…"}, {"id": ""}, {"since": "1"}, {"since": True}, {"text": None}):  # fmt: skip
        assert person.post(row, "agree", **change)[0] == 400, change
    assert (
        person.post({**row, "id": row["id"][:12]}, "agree", "Yes")[0] == 409
    )  # the beginning of an id is no id
    assert person.post(row, "take")[0] == person.post(row, "accept")[0] == 409
    assert person.lines() == before

    found = [person.post(row, "reply", text) for text in HOSTILE]
    assert [status for status, _ in found] == [200, 200, 409, 409, 200]
    assert all("Nothing was written." in said for status, said in found if status == 409)
    person.look()
    assert not {"\u202e", "\x1b", "\x00"} & set(json.dumps(person.data, ensure_ascii=False))


def test_a_task_is_taken_answered_refused_and_accepted(path: Path) -> None:
    """By the operations of the library: what they refuse is a sentence."""
    person = Person(path)
    with opened(path, "Curie", 1) as log:
        mine, other = (delegated(log, text, to="Noether", wu="WU-1") for text in ("Take it", "Refuse it"))
    with opened(path, "Noether", 2) as log:
        theirs = delegated(log, "Do it", to="Gauss", wu="WU-2")
    rows = {each["id"]: each for each in person.look()}
    assert [rows[each]["ways"] for each in (mine, other)] == [["take", "refuse"]] * 2
    assert person.post(rows[mine], "take")[0] == person.post(rows[other], "refuse", "No time")[0] == 200
    assert person.post(rows[mine], "refuse", "Changed my mind")[0] == 409
    with opened(path, "Gauss", 32) as log:
        log.tasks.take(theirs)
        log.tasks.ask(theirs, "Which?")
    (question,) = (each for each in person.look() if each["id"] == theirs)
    assert (question["ways"], question["text"]) == (["answer"], "Which?")
    assert person.post(question, "answer", "The first")[0] == 200
    with opened(path, "Gauss", 34) as log:
        log.tasks.report(theirs, "completed", "Done")
    (result,) = (each for each in person.look() if each["id"] == theirs)
    assert person.post(result, "accept")[0] == 200
    person.log.close()


def test_a_handoff_that_is_taken_moves_the_claims_as_the_command_does(path: Path) -> None:
    """The page accepts it; it does not only take the task."""
    person = Person(path)
    with opened(path, "Curie", 1) as log:
        log.claims.claim(["src/**"], wu="WU-1")
        offered = log.tasks.handoff("Noether", "Go on.").task["task_id"]
    (row,) = (each for each in person.look() if each["id"] == offered)

    assert person.post(row, "take")[0] == 200

    with opened(path, "Noether", 31) as log:
        assert [each.paths for each in log.claims.list(mine=True).claims] == [["src/**"]]
    person.log.close()


def test_who_is_nobody_here_is_told_why(person: Person, path: Path) -> None:
    """The page has no buttons then, and the server records nothing."""
    with opened(path, "Noether", 31) as log:
        log.sessions.end()
    (row,) = (each for each in person.data["board"]["waits"] if each["yours"])
    before = person.lines()

    status, said = person.post(row, "agree", "Yes")

    assert (status, person.lines()) == (409, before)
    assert "Noether" in said and "Nothing was written." in said
    person.look()
    assert "Noether" in person.data["you"]["why"] and "agent" not in person.data["you"]
