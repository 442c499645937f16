"""`gitmem log` and `gitmem show`: every kind of record is listed, and what the list names can be shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gitmem import commit_message, records
from gitmem.signals import history

from ..commits.people import git, install_hook
from ..memory.desk import raw
from ..sandbox import Clock, open_store
from .conftest import Run

Start = Callable[..., str]


def day(run: Run, start: Start, repo: Path) -> None:
    """One record of each kind, at least."""
    git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
    install_hook(repo)
    planck, curie = start("Planck"), start("Curie")

    def id_of(*args: str, session: str = planck) -> str:
        said = run(*args, "-q", session=session)
        assert said.status == 0, said
        return said.out.strip()

    asked = id_of("signal", "Split it?", "--to", "Curie", "--intent", "propose", "--wu", "WU-7")
    run("gate", "--wu", "WU-7", "--anyway", "late", session=curie)
    run("inbox", session=curie)
    id_of("reply", asked, "Yes", "--agree", session=curie)
    task = id_of("delegate", "Review it", "--to", "Curie")
    run("task", "take", task, session=curie)
    run("task", "done", task, "No\nobjections", session=curie)
    run("claim", "src/**", session=curie)
    run("claim", "src/**", "--for", "2h", session=curie)
    run("claim", "release", session=curie)
    one, two = (
        id_of("mem", "create", text, "--type", "note", "--wu", "WU-7") for text in ("A fact", "A bug")
    )
    run("mem", "update", one, "--priority", "P1", session=planck)
    assert run("mem", "relate", one, "blocks", two, session=planck).status == 0
    run("mem", "context", "--wu", "WU-7", "--track-access", session=curie)
    assert run("forget", id_of("signal", "A slip", "--to", "Curie"), "a slip", session=planck).status == 0
    assert run("trust", "0" * 16, "--yes", session=planck).status == 0
    (repo / "a").write_text("a")
    git(repo, "add", "a")
    git(repo, "commit", "--quiet", "-m", "A", GITMEM_SESSION=planck)
    assert run("whoami", session=planck).status == 0


def test_every_kind_of_record_is_listed_and_shown(run: Run, start: Start, repo: Path) -> None:
    """The kinds are those of the table: one that is added there can't be forgotten here."""
    assert set(commit_message.DESCRIBED) <= set(records.KINDS) == set(records.ID_FIELDS)
    day(run, start, repo)
    upkeep, written = {"receipt", "access", "attestation"}, set(records.KINDS)
    usual = run("log", "-n", "200", "--json").json["entries"]
    assert {each["kind"] for each in usual} == written - upkeep
    every = run("log", "-n", "200", "--receipts", "--json").json["entries"]
    assert {each["kind"] for each in every} == written
    renewals = [each for each in every if each.get("event") == "renew"]
    assert renewals and not any(each.get("event") == "renew" for each in usual)
    table = run("log", "-n", "200", "--receipts").out
    for entry in every:
        id = str(entry[records.ID_FIELDS[entry["kind"]]])
        assert f"  {id} " in table
        said = run("show", id)
        assert (said.status, said.out != "") == (0, True), said
        shown: dict[str, Any] = run("show", id, "--json").json
        inside = json.dumps(shown.get("record") or shown.get("node"))
        assert json.dumps(id) in inside
        for step in shown["next"]:
            assert run(*step.split()[1:]).status == 0, step
    for words in ("Planck → Curie: PROPOSE Split it?", "Planck → Curie: DELEGATION Review it", "Curie takes task-",
                  ": No", "Curie claims src/**", "Curie renews src/**", "Curie releases src/**",
                  "Planck changed mem-", "Planck links mem-", "Curie read mem-", "Curie passes the gate of WU-7"):  # fmt: skip
        assert words in table, words
    assert "objections" not in table


def test_a_record_is_found_by_the_beginning_of_its_id(run: Run, start: Start, repo: Path) -> None:
    """Of any kind; the others are refused, with what they may be."""
    day(run, start, repo)
    for entry in run("log", "-n", "200", "--json").json["entries"]:
        if entry["kind"] in ("task", "task_event", "claim", "audit", "signal"):
            id = str(entry[records.ID_FIELDS[entry["kind"]]])
            assert id in run("show", id[:-3]).out
    refused = run("show", "tev-zzzzzz", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, "unknown-id")
    assert run("show", "tev-").status == 2


def test_a_peer_hides_no_signal_by_a_field_of_claims(repo: Path) -> None:
    """Only renewals of claims and takes are left out, not what calls itself one."""
    store = open_store(repo, Clock())
    raw(
        store,
        "signal",
        signal_id="sig-0000",
        message="Seen",
        thread_id="thread-0",
        recipients=["a:b:c"],
        event="renew",
    )
    lease = {"claim_id": "claim-0000", "paths": ["a"], "mode": "shared"}
    raw(store, "claim", event="claim", **lease)
    raw(store, "claim", event="renew", **lease)
    kinds = [(each["kind"], each.get("event")) for each in history.log(store).entries]
    assert kinds == [("signal", "renew"), ("claim", "claim")]
    assert len(history.log(store, receipts=True).entries) == 3
