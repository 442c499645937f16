"""The core specification suffices: a bus in JavaScript, written from docs/spec-core.md alone, passes the core of the suite."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitmem.conformance import case_setup
from gitmem.conformance.adapter import Convergence, Options, Receipt, Session, Signal

from .suite import run

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "docs/spec-core.md"
PAGE = ROOT / "docs/conformance.md"
BUS = Path(__file__).with_name("bus.mjs")
SPEC_BYTES_MAX = 8192
BUS_LINES_MAX = 600
ADAPTER = "gitmem.conformance.over_http:make"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="a bus in JavaScript wants node (Debian: nodejs)")
# A line of the bus → the line of one that breaks a rule, and the case that has to catch it.
FAULTS = {
    "shows broadcasts to their sender": (
        "own.includes(reader)) : !isOwn(each));",
        "own.includes(reader)) : true);",
        "a_broadcast_does_not_show_to_its_sender",
    ),
    "shows what was read": (
        " && !this.hasRead(own, each.signal_id));",
        ");",
        "sessions_with_one_identity_share_what_was_read",
    ),
    "has keys of its own": (
        "hash(textOf([sender, key])).slice(0, 24)",
        "newId()",
        "the_same_key_is_the_same_signal",
    ),
    "is content with some": ("others.every((each)", "others.some((each)", "all_agree"),
    "believes answers to other text": (
        "? this.contents(signal.reply_to).includes(signal.answers_digest)",
        "? true",
        "a_decision_on_other_content_does_not_count",
    ),
    "orders no decisions": (
        "new Set(some.flatMap((each) => [...reach(each.signal_id, edges)]))",
        "new Set()",
        "the_latest_decision_counts",
    ),
}


@contextmanager
def started(program: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a bus on a free port; it may say nothing on stderr."""
    errors = tmp_path / "stderr"
    with errors.open("w") as file:
        bus = subprocess.Popen([str(NODE), str(program)], stdout=subprocess.PIPE, stderr=file, text=True)
    try:
        assert bus.stdout is not None
        url = bus.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), errors.read_text()
        yield url
        assert bus.poll() is None, errors.read_text()
    finally:
        bus.kill()
        bus.communicate()
    assert errors.read_text() == ""


@pytest.mark.deep
@needs_node
def test_a_bus_in_another_language_passes_the_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it applies, and nothing else is asked of it."""
    with started(BUS, tmp_path) as url:
        monkeypatch.setenv("BUS_URL", url)
        ran = run(ADAPTER, tmp_path, "-m", "core")

    assert ran.status == 0, ran.said()
    assert ran.not_applicable == set()
    core = {case.name for case in case_setup.cases() if case.group in case_setup.CORE}
    assert {each.partition("[")[0] for each in ran.passed} == core


@pytest.mark.deep
@needs_node
@pytest.mark.parametrize("fault", FAULTS)
def test_a_bus_that_breaks_a_rule_does_not_pass(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP and in another language, too."""
    right, wrong, name = FAULTS[fault]
    whole = BUS.read_text(encoding="utf-8")
    assert whole.count(right) == 1
    program = tmp_path / "wrong.mjs"
    program.write_text(whole.replace(right, wrong), encoding="utf-8")
    (module,) = (case_setup.GROUPS[case.group][1] for case in case_setup.cases() if case.name == name)

    with started(program, tmp_path) as url:
        monkeypatch.setenv("BUS_URL", url)
        ran = run(ADAPTER, tmp_path, of=[f"{module}::test_{name}"])

    assert {each.partition("[")[0] for each in ran.failed} == {name}


@pytest.mark.deep
@needs_node
def test_a_request_that_is_none_of_the_page_gets_a_sentence(tmp_path: Path) -> None:
    """And the bus goes on."""
    name = "0" * 32
    requests = {
        f"/try/{name}/1/start": ["{", "[]", '{"identity": 3}', '{"name": ["a"]}'],
        f"/try/{name}/1/take": ["{}", '{"record": {"kind": "task"}}'],
        f"/try/{name}/1/constructor": ["{}"],
        f"/try/{name}/0/start": ["{}"],
        "/try/../1/start": ["{}"],
        "/": [""],
    }
    with started(BUS, tmp_path) as url:
        for path, bodies in requests.items():
            for body in bodies:
                status, said = posted(url, path, body)
                assert (status, type(json.loads(said))) == (400, str), (path, body, said)
        with pytest.raises(OSError):
            posted(url, f"/try/{name}/1/start", " " * 10_000_000)
        assert posted(url, f"/try/{name}/1/end", '{"session": "sess-1"}')[0] == 409
        assert posted(url, f"/try/{name}/1/start", '{"quorum": 2}')[0] == 409
        assert posted(url, f"/try/{name}/1/start", "{}")[0] == 200


def posted(url: str, path: str, body: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.split("/")[2], timeout=30)
    try:
        connection.request("POST", path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_the_core_stays_small() -> None:
    """A stranger reads the page in one go, and the bus is no longer than a stranger would write it."""
    assert len(SPEC.read_bytes()) <= SPEC_BYTES_MAX
    assert len(BUS.read_text(encoding="utf-8").splitlines()) <= BUS_LINES_MAX


def test_the_core_is_part_of_the_whole() -> None:
    """Its operations are those of the page of the suite, with the same fields, without those of the other groups."""
    core, whole = operations(SPEC), operations(PAGE)

    assert core == {name: whole[name] for name in core}
    assert whole.keys() - core.keys() == {
        "role", "delegate", "work", "task", "handoff", "claim", "unclaim", "claims", "judge",
    }  # fmt: skip


def operations(page: Path) -> dict[str, list[str]]:
    """The rows of the table of operations, each with the fields of its body."""
    _, _, table = page.read_text(encoding="utf-8").partition("| operation | body | answer |\n|---|---|---|\n")
    rows = [row.strip("| ").split("|")[:2] for row in table.partition("\n\n")[0].splitlines()]
    return {name.strip(" `"): re.findall(r"`(\w+\??)`", body) for name, body in rows}


def test_the_core_has_every_field() -> None:
    """Of what it sends and of what it answers, as the suite reads it."""
    said = set(re.findall(r"`(\w+)\??`", SPEC.read_text(encoding="utf-8"))) | {
        "need",
        "veto",
    }  # of the group quorum

    for shape in (Signal, Receipt, Convergence, Session, Options):
        assert set(shape.__annotations__) <= said, shape


def test_the_page_of_the_suite_names_the_core() -> None:
    part = PAGE.read_text(encoding="utf-8").partition("## The core\n")[2].partition("\n## ")[0].lower()

    assert [group for group in case_setup.GROUPS if group in part.partition(" are the core")[0]] == [
        *case_setup.CORE
    ]
