"""`gitmem why` with what git-ai and agent-trace say: whose word it is, what contradicts, what is exported, and what is left out."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from gitmem.history import other_tools

from ..commits.people import git
from ..commits.vendors import annotate, append, authorship, session_key, trace
from ..git_on_path import GitOnPath
from .conftest import Run
from .test_why import Start, commit
from .test_why import shop as shop

TEXT = "one\ntwo\nthree\n"


def test_lines_that_only_another_tool_knows_are_its_word(shop: Path, run: Run) -> None:
    """The agent, its model, and that nobody has signed it; a line that was typed; and one of which nobody says anything."""
    made = commit(shop, "a.py", "1\n2\n3\n4\n", "four lines")
    humans = {"h_31dce776f88375": {"author": "Ada <ada@example.org>"}}
    note = authorship(made, {"a.py": "1-2"}, humans=humans).replace(
        "\n---\n", "\n  h_31dce776f88375 3\n---\n", 1
    )
    annotate(shop, made, note)
    (one,) = run("why", "a.py", "--json").json["commits"]
    assert one["made_by"] == []
    keys = ("by", "kind", "client", "model", "session", "person", "lines", "conflicts")
    assert [tuple(each[key] for key in keys) for each in one["said"]] == [
        ("git-ai", "ai", "cursor", "gpt-5", "talk-1", None, [[1, 2]], False),
        ("git-ai", "human", None, None, None, "Ada <ada@example.org>", [[3, 3]], False),
    ]
    said = run("why", "a.py:2").out
    assert (
        "no record of a session" in said
        and "git-ai says: written by cursor (gpt-5) (session talk-1; unsigned)" in said
    )
    assert "git-ai says: typed by Ada <ada@example.org> (unsigned)" in run("why", "a.py:3").out
    assert (
        "git-ai" not in run("why", "a.py:4").out and "git-ai says: written by cursor" in run("why", made).out
    )
    append(shop, trace(made, "a.py", [(4, 4)]))
    said = run("why", "a.py:4").out
    assert (
        "agent-trace says: written by windsurf (openai/gpt-5) (session https://example.org/talk; unsigned)"
        in said
    )


def test_a_record_of_a_session_comes_before_a_word_against_it(shop: Path, run: Run, start: Start) -> None:
    """It is marked, in text and JSON; a word that agrees is not."""
    bohr = start("Bohr", "--agent-identity", "cursor:worker:bohr")
    made = commit(shop, "a.py", TEXT, "lines", GITMEM_SESSION=bohr)
    assert run("whoami", session=bohr).status == 0
    annotate(shop, made, authorship(made, {"a.py": "1"}))
    append(shop, trace(made, "a.py", [(2, 2)]))
    (one,) = run("why", "a.py", "--json").json["commits"]
    assert [(each["session_id"], each["lines"]) for each in one["made_by"]] == [(bohr, [[1, 3]])]
    assert [(each["by"], each["conflicts"]) for each in one["said"]] == [
        ("git-ai", False),
        ("agent-trace", True),
    ]
    said = run("why", "a.py:2").out
    assert "made by Bohr" in said and "agent-trace says otherwise: written by windsurf" in said
    said = run("why", "a.py:1").out
    assert "made by Bohr" in said and "git-ai" not in said
    before = git(shop, "rev-parse", "refs/notes/ai")
    said = run("why", "a.py:1", "--export", "git-ai")
    assert said.status == 0 and "written" not in said.out
    assert "stays as it is" in said.err and git(shop, "rev-parse", "refs/notes/ai") == before


@pytest.mark.parametrize("count", [1, 3])
def test_a_persons_squash_keeps_the_agents_of_its_lines(
    shop: Path, run: Run, start: Start, count: int
) -> None:
    """However many commits it has, also when the branch is gone; the person's own lines, and lines between them, are nobody's."""
    bohr = start("Bohr")
    commit(shop, "a.py", "".join(f"{at}\n" for at in range(20)), "base")
    git(shop, "checkout", "--quiet", "-b", "topic")
    text = (shop / "a.py").read_text()
    for number in range(count):
        text += f"agent {number}\n"
        commit(shop, "a.py", text, f"agent {number}", GITMEM_SESSION=bohr)
    git(shop, "checkout", "--quiet", "main")
    commit(shop, "a.py", "top\n" + "".join(f"{at}\n" for at in range(20)), "a person's line")
    git(shop, "merge", "--quiet", "--squash", "topic")
    git(shop, "commit", "--quiet", "-m", "all of it", GIT_AUTHOR_DATE="@1790000500 +0000")  # of another time
    git(shop, "branch", "--quiet", "-D", "topic")
    assert run("whoami", session=bohr).status == 0
    git(shop, "update-ref", "ORIG_HEAD", "HEAD")  # the next merge: what was squashed is recorded by then
    for line in range(22, 22 + count):
        (one,) = run("why", f"a.py:{line}", "--json").json["commits"]
        assert one["subject"] == "all of it" and [each["session_id"] for each in one["made_by"]] == [bohr]
        assert one["made_by"][0]["lines"] == [[line, line]]
    (one,) = run("why", "a.py:1", "--json").json["commits"]
    assert one["made_by"] == []
    (one,) = run("why", "HEAD", "--json").json["commits"]
    assert [each["session_id"] for each in one["made_by"]] == [bohr]


@pytest.mark.deep
def test_what_another_tool_said_survives_squash_rebase_and_cherry_pick(shop: Path, run: Run) -> None:
    """Its notes stay at the commits that are gone. The answer says which one it is about."""
    commit(shop, "a.py", "".join(f"{at}\n" for at in range(30)), "base")
    for way in ("squash", "rebase", "pick"):
        git(shop, "checkout", "--quiet", "-b", way)
        text = (shop / "a.py").read_text() + f"{way}\n"
        noted = commit(shop, "a.py", text, f"{way} made")
        annotate(shop, noted, authorship(noted, {"a.py": f"{text.count(chr(10))}"}, client=way))
        git(shop, "checkout", "--quiet", "main")
        before = (shop / "a.py").read_text()
        commit(shop, "a.py", f"{way} top\n{before}", "on main")
        time.sleep(1.1)  # else what is repeated could be the same commit
        if way == "squash":
            git(shop, "merge", "--quiet", "--squash", way)
            git(shop, "commit", "--quiet", "-m", "squashed")
        elif way == "rebase":
            git(shop, "rebase", "--quiet", "main", way)
            git(shop, "checkout", "--quiet", "main")
            git(shop, "merge", "--quiet", "--ff-only", way)
        else:
            git(shop, "cherry-pick", way)
        last = (shop / "a.py").read_text().count("\n")
        (one,) = run("why", f"a.py:{last}", "--json").json["commits"]
        assert [(each["client"], each["commit"], each["lines"]) for each in one["said"]] == [
            (way, noted, [[last, last]])
        ]
        assert one["commit"] != noted
        assert f"about {noted[:12]}, whose changes it has" in run("why", f"a.py:{last}").out
        assert run("why", "a.py:1", "--json").json["commits"][0]["said"] == []


def test_the_same_small_change_of_a_person_is_not_another_tools(shop: Path, run: Run) -> None:
    """An agent's commit on a branch that nobody merged, and a person who types the same line."""
    commit(shop, "a.py", TEXT, "base")
    git(shop, "checkout", "--quiet", "-b", "topic")
    noted = commit(shop, "a.py", TEXT + "four\n", "agent's")
    annotate(shop, noted, authorship(noted, {"a.py": "4"}))
    git(shop, "checkout", "--quiet", "main")
    time.sleep(1.1)
    commit(shop, "a.py", TEXT + "four\n", "typed")
    (one,) = run("why", "a.py:4", "--json").json["commits"]
    assert (one["subject"], one["said"], one["made_by"]) == ("typed", [], [])


def test_exported_lines_are_read_again_by_either_tools_form(shop: Path, run: Run, start: Start) -> None:
    """git-ai's ref is written only on request, again without doubles, and beside another tool's note; agent-trace is printed, with what is behind it."""
    bohr, curie = start("Bohr", "--agent-identity", "claude-code:worker:bohr"), start("Curie")
    run("session", "set", "--wu", "WU-7", session=bohr)
    words = ("signal", "Round half up?", "--to", "Curie", "--intent", "PROPOSE", "--wu", "WU-7", "--json")
    asked = run(*words, session=bohr).json["signal"]
    assert run("reply", asked["signal_id"], "yes", "--agree", session=curie).status == 0
    node = run(
        "mem", "create", "In cents", "--type", "note", "--path", "a.py", "-q", session=curie
    ).out.strip()
    other = commit(shop, "a.py", "0\n", "another tool's")
    annotate(shop, other, theirs := authorship(other, {"a.py": "1"}))
    time.sleep(1.1)
    made = commit(shop, "a.py", "0\none\ntwo\n", "two lines", GITMEM_SESSION=bohr)
    assert run("whoami", session=bohr).status == 0
    annotate(shop, made, authorship(made, {"a.py": "2"}, git_ai_version="gitmem/0.0.1"))  # an older export
    before = git(shop, "rev-parse", "refs/notes/ai")
    record = json.loads(run("why", "a.py:2-3", "--export", "agent-trace").out)
    assert git(shop, "rev-parse", "refs/notes/ai") == before
    assert (record["version"], record["vcs"]) == ("0.1.0", {"type": "git", "revision": made})
    (talk,) = record["files"][0]["conversations"]
    assert (talk["url"], talk["contributor"]["type"]) == (f"gitmem:{bohr}", "ai")
    assert talk["ranges"] == [{"start_line": 2, "end_line": 3}]
    assert {(each["type"], each["url"]) for each in talk["related"]} == {
        ("agreement", f"gitmem:{asked['thread_id']}"), ("memory", f"gitmem:{node}"),
    }  # fmt: skip
    for target in ("a.py:2", "a.py", "a.py"):
        found = run("why", target, "--export", "git-ai", "--json").json
        assert (found["ref"], found["commits"]) == ("refs/notes/ai", [made]), found
    note = git(shop, "notes", "--ref=ai", "show", made)
    key = session_key("claude", bohr)
    assert note.startswith(f"a.py\n  {key}::t_") and note.split("\n")[1].endswith(" 2-3")
    assert json.loads(note.partition("\n---\n")[2])["sessions"][key]["agent_id"]["tool"] == "claude"
    assert git(shop, "notes", "--ref=ai", "show", other).strip() == theirs
    (one, _) = run("why", "a.py", "--json").json["commits"]
    assert [(each["lines"], each["conflicts"]) for each in one["said"]] == [([[2, 3]], False)]
    append(shop, record)
    assert "otherwise" not in run("why", "a.py").out


def test_an_export_of_what_no_session_made_writes_nothing(shop: Path, run: Run) -> None:
    commit(shop, "a.py", TEXT, "lines")
    for form in ("git-ai", "agent-trace"):
        said = run("why", "a.py", "--export", form)
        assert "nothing to export" in said.err and not said.out  # an empty file of JSON lines
    assert git(shop, "for-each-ref", "refs/notes") == ""
    for words in (("a.py", "--export", "csv"), ("HEAD", "--export", "git-ai")):
        said = run("why", *words, "--json")
        assert said.status == 2 and json.loads(said.out)["error"]["code"] == "bad-export"


BAD_NOTES = {
    "another version": (
        authorship("0" * 40, {"a.py": "1"}).replace("3.0.0", "9.0.0"),
        "authorship/9.0.0, not authorship/3.0.0",
    ),
    "not UTF-8": (b"a.py\n  \xff\xfe 1\n---\n{}", "not UTF-8"),
    "no divider": ("a.py\n  s_1 1\n", "no line `---`"),
    "broken JSON": ("a.py\n  s_1 1\n---\n{", "cannot be read"),
    "deep JSON": ("a.py\n  s_1 1\n---\n" + "[" * 200_000, "cannot be read"),
    "a huge number": ("a.py\n---\n" + "9" * 10_000, "left out"),
    "a list": ("a.py\n---\n[]", "of the version none"),
    "not lines": (authorship("0" * 40, {"a.py": "3-1"}), "it has the lines 3-1"),
    "lines of no file": (authorship("0" * 40, {"a.py": "1-400"}), "line 400 of a.py"),
    "an absolute path": (
        authorship("0" * 40, {"/etc/passwd": "1"}),
        "outside of the repository (/etc/passwd)",
    ),
    "a path above": (authorship("0" * 40, {"x/../../a.py": "1"}), "outside of the repository (x/../../a.py)"),
    "an escape": (authorship("0" * 40, {"/a\x1b[2Jb": "1"}), "(/a\\u001b[2Jb)"),
    "100 MB": (b"a.py\n" + b"  s_1 1\n" * 13_000_000, "at most 4,194,304 are read"),
}


@pytest.mark.parametrize(
    "what", [pytest.param(each, marks=pytest.mark.deep if each == "100 MB" else ()) for each in BAD_NOTES]
)
def test_a_note_that_cannot_be_read_is_left_out_with_a_sentence(shop: Path, run: Run, what: str) -> None:
    made = commit(shop, "a.py", TEXT, "lines")
    note, words = BAD_NOTES[what]
    annotate(shop, made, note)
    began = time.monotonic()
    said = run("why", "a.py:1")
    assert time.monotonic() - began < 5
    assert said.status == 0 and "Traceback" not in said.err, said
    assert words in " ".join(said.out.split()) and "git-ai says" not in said.out, said
    assert "\x1b" not in said.out and run("why", "a.py:1", "--json").json["commits"][0]["said"] == []


BAD_RECORDS = {
    "another version": (trace("COMMIT", "a.py", [(1, 1)], version="1.0"), "of the version 1.0, not 0.1.0"),
    "not JSON": ('{"revision": "COMMIT"', "cannot be read"),
    "not UTF-8": ('{"revision": "COMMIT", "\udcff": 1}', "not UTF-8"),
    "an absolute path": (trace("COMMIT", "/etc/passwd", [(1, 1)]), "outside of the repository (/etc/passwd)"),
    "lines of no file": (trace("COMMIT", "a.py", [(1, 9)]), "line 9 of a.py"),
    "texts for numbers": (trace("COMMIT", "a.py", [("1", "2")]), "it has the lines 1-2"),  # type: ignore[list-item]
    "a missing commit": (trace("f" * 40, "a.py", [(1, 1)]), "about a commit that this clone does not have"),
    "other kinds of values": (
        {"version": "0.1.0", "vcs": {"revision": "COMMIT"}, "files": [3, {"path": 7}]},
        "outside of the repository",
    ),
}


@pytest.mark.parametrize("what", BAD_RECORDS)
def test_a_record_that_cannot_be_read_is_left_out_with_a_sentence(shop: Path, run: Run, what: str) -> None:
    made = commit(shop, "a.py", TEXT, "lines")
    record, words = BAD_RECORDS[what]
    text = record if isinstance(record, str) else json.dumps(record)
    where = append(shop)
    where.write_bytes(text.replace("COMMIT", made).encode("utf-8", "surrogateescape") + b"\n")
    said = run("why", "a.py:1")
    assert said.status == 0 and words in " ".join(said.out.split()), said
    assert "agent-trace says" not in said.out


def test_odd_files_and_refs_of_other_tools_stop_no_answer(shop: Path, run: Run, tmp_path: Path) -> None:
    """A pipe, links, a file that is larger than what is read, refs that are no commits or lead to each other."""
    made = commit(shop, "a.py", TEXT, "lines")
    git(shop, "update-ref", "refs/notes/ai", git(shop, "hash-object", "-w", "a.py").strip())
    said = run("why", "a.py:1")
    assert said.status == 0 and "refs/notes/ai is left out: it is damaged" in said.out
    (shop / ".git" / "refs" / "notes" / "ai").write_text("ref: refs/notes/loop\n")
    (shop / ".git" / "refs" / "notes" / "loop").write_text("ref: refs/notes/ai\n")
    assert run("why", "a.py:1").status == 0
    where = append(shop, trace(made, "a.py", [(1, 1)]))
    where.rename(tmp_path / "elsewhere.jsonl")
    where.symlink_to(tmp_path / "elsewhere.jsonl")
    os.mkfifo(where.parent / "pipe.jsonl")
    assert "agent-trace says" not in run("why", "a.py:1").out
    where.unlink()
    append(shop, "x" * (other_tools.FILE_MAX + 1), trace(made, "a.py", [(1, 1)]))
    said = run("why", "a.py:1").out
    assert "agent-trace says: written by windsurf" in said and "traces.jsonl is large" in said


def test_many_records_cost_no_more_than_what_is_read(shop: Path, run: Run) -> None:
    """Of a commit, of all files together, and of a note; the last ones count."""
    made = commit(shop, "a.py", TEXT, "lines")
    where = append(shop, *[trace(made, "a.py", [(1, 1)])] * (other_tools.ROWS_MAX + 1))
    assert "only the last 2,000 are read" in run("why", "a.py:1").out
    for number in range(5):
        with open(where.with_name(f"a{number}.jsonl"), "wb") as file:
            file.truncate(other_tools.FILE_MAX)
    said = run("why", "a.py:1").out
    assert "agent-trace says" not in said and "only 64 MiB of it are read" in said
    annotate(shop, made, authorship(made, {"a.py": ",".join(["1"] * 20_001)}))
    assert "more than 20,000 ranges" in run("why", "a.py:1").out


def test_texts_of_other_tools_are_shown_as_data(shop: Path, run: Run) -> None:
    made = commit(shop, "a.py", TEXT, "lines")
    annotate(
        shop, made, authorship(made, {"a.py": "1"}, client="cursor\x1b[31m", session="</system>" + "x" * 500)
    )
    said = run("why", "a.py:1").out
    assert "\x1b" not in said and "written by cursor\\u001b[31m" in said and "x" * 200 not in said


def test_without_other_tools_an_answer_starts_no_git_more(
    shop: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes cost nothing where there are none."""
    commit(shop, "a.py", TEXT, "lines")
    run("why", "a.py:1")
    on_path = GitOnPath(tmp_path, monkeypatch)
    assert run("why", "a.py:1").status == 0
    names = ("blame", "rev-list", "diff-tree", "patch-id", "config")  # the last is the answer's next command
    started = [next((each for each in names if f" {each} " in args), args) for _, args in on_path.started]
    assert started == list(names)
