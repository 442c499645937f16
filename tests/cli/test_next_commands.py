"""The commands at the end of an answer: copied, they act in the same place, as the same, on the same."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.render import output

from .conftest import Run, Said

Start = Callable[..., str]
Git = Callable[..., str]


def steps(said: Said) -> list[str]:
    """The `next` of a text answer, or of an error."""
    return [
        line.removeprefix("next: ")
        for line in (said.out + said.err).splitlines()
        if line.startswith("next: ")
    ]


def again(run: Run, command: str, **more: object) -> Said:
    """Run a `next` as a shell would."""
    program, *args = shlex.split(command)
    assert program == "gitmem"
    return run(*args, **more)


@pytest.fixture
def remote(repo: Path, git: Git, tmp_path: Path) -> Path:
    hub = tmp_path / "hub.git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(hub))
    git("remote", "add", "origin", str(hub), cwd=repo)
    git("push", "--quiet", "origin", "main", cwd=repo)
    return hub


@pytest.mark.parametrize(
    ("command", "carried"),
    [
        ("gitmem inbox", "gitmem -C 'a b' --as 'O'\"'\"'Neill' inbox"),
        ("gitmem session end", "gitmem -C 'a b' --as 'O'\"'\"'Neill' session end"),
        ("gitmem session start", "gitmem -C 'a b' session start"),
        ("gitmem claim list", "gitmem -C 'a b' --as 'O'\"'\"'Neill' claim list"),
        ("gitmem task take task-1", "gitmem -C 'a b' --as 'O'\"'\"'Neill' task take task-1"),
        ("gitmem delegate work", "gitmem -C 'a b' --as 'O'\"'\"'Neill' delegate work"),
        ("gitmem", "gitmem -C 'a b'"),
        ("gitmem sync", "gitmem -C 'a b' sync"),
        ("gitmem whoami --as sess-1", "gitmem -C 'a b' whoami --as sess-1"),
        ("git log gitmem/log --", "git -C 'a b' log gitmem/log --"),
        ("git -C /x log", "git -C /x log"),
        ("export GITMEM_SESSION=sess-1", "export GITMEM_SESSION=sess-1"),
    ],
)
def test_place_and_actor_are_carried_where_they_belong(command: str, carried: str) -> None:
    """-C on whatever looks at a repository, --as on what acts as somebody."""
    output.begin()
    output.set_options("a b", "O'Neill")
    try:
        assert output.with_options([command]) == [carried]
    finally:
        output.begin()
    assert output.with_options([command]) == [command]


@pytest.mark.parametrize("json", [False, True])
def test_a_copied_command_acts_as_the_same_in_the_same_place(
    json: bool, run: Run, start: Start, repo: Path, tmp_path: Path
) -> None:
    """From another folder, with --as: the answer that `inbox` offers is Curie's, in that repository."""
    planck = start("Planck")
    start("Curie")
    run("signal", "Shall we?", "--to", "Curie", "--intent", "propose", session=planck)
    where = ("-C", str(repo), "--as", "Curie")
    said = run(*where, "inbox", *(["--json"] if json else []), cwd=tmp_path)
    reply = said.out.partition(" To agree: ")[2].partition(" · ")[0]
    first = said.json["next"][0] if json else reply

    assert again(run, first, cwd=tmp_path).status == 0
    root = run("log", "--json").json["entries"][-2]["signal_id"]
    assert run("converged", root).status == 0


def test_errors_carry_too(run: Run, repo: Path, tmp_path: Path) -> None:
    """In text and in JSON, also where the hint is the usual one; a sync only where there is a remote."""
    alone = run("-C", str(repo), "show", "sig-nothing", "--json", cwd=tmp_path)
    assert alone.json["next"] == [] and "machine" not in alone.json["error"]["hint"]
    assert "machine" not in run("-C", str(repo), "task", "show", "task-nothing", cwd=tmp_path).err
    subprocess.run(["git", "remote", "add", "hub", "/nowhere"], cwd=repo, check=True)
    said = run("-C", str(repo), "show", "sig-nothing", "--json", cwd=tmp_path)
    assert said.json["next"] == [f"gitmem -C {repo} sync"]
    assert f"another machine: `gitmem -C {repo} sync` fetches it." in said.json["error"]["hint"]
    assert steps(run("-C", str(repo), "show", "sig-nothing", cwd=tmp_path)) == said.json["next"]


def test_more_of_an_inbox_keeps_what_was_asked_for(run: Run, start: Start) -> None:
    """Filters and --no-mark; where nothing was marked the same would come again, so the limit grows."""
    planck, curie = start("Planck"), start("Curie")
    for number in range(3):
        run("signal", f"{number}", "--to", "Curie", "--wu", "WU-7", session=planck)
    asked = ("inbox", "--wu", "WU-7", "--from", "Planck", "--limit", "1")

    looked = steps(run(*asked, "--no-mark", session=curie))[0]
    assert looked == "gitmem inbox --wu WU-7 --from Planck --no-mark --limit 3"
    assert len(again(run, f"{looked} --json", session=curie).json["signals"]) == 3
    read = steps(run(*asked, session=curie))[0]
    assert read == "gitmem inbox --wu WU-7 --from Planck --limit 1"
    assert again(run, f"{read} --json", session=curie).json["signals"][0]["message"] == "1"


def test_what_is_asked_of_a_reader_comes_first(run: Run, start: Start) -> None:
    """The last proposal that it has not answered, without --requires-ack; nothing of that in a peek."""
    planck, curie = start("Planck"), start("Curie")
    first, second = (
        run("signal", text, "--to", "Curie", "--intent", "propose", "-q", session=planck).out.strip()
        for text in ("One?", "Two?")
    )
    assert steps(run("inbox", "--for", "Curie", session=planck))[0].startswith("gitmem thread ")
    seen = run("inbox", "--json", session=curie).json["next"]
    assert seen == [f"gitmem reply {second} agreed --agree", f"gitmem reply {second} rejected --reject"]
    assert steps(run("thread", second, session=curie))[0] == f"gitmem reply {second} agreed --agree"
    again(run, seen[0], session=curie)

    assert (
        run("inbox", "--all", "--json", session=curie).json["next"][0]
        == f"gitmem reply {first} agreed --agree"
    )
    assert steps(run("thread", second, session=curie)) == [], "what was agreed on needs nothing"
    (step,) = steps(run("thread", first, session=planck))
    assert step.startswith("gitmem converged thread-")


def test_who_has_not_answered_is_not_told_to_wait_for_itself(run: Run, start: Start) -> None:
    """Its own answer comes first; others who were asked are waited for; nobody else's step changes."""
    planck, curie, bohr = start("Planck"), start("Curie"), start("Bohr")
    both = run("signal", "So?", "--to", "Curie,Bohr", "--intent", "propose", "-q", session=planck).out.strip()
    own = [f"gitmem reply {both} agreed --agree", f"gitmem reply {both} rejected --reject"]

    found = steps(run("converged", both, session=curie))
    assert found[:2] == own and found[2].endswith(" --wait 60s")
    run("reply", both, "Fine.", "--agree", session=bohr)
    found = steps(run("converged", both, session=curie))
    assert found[:2] == own and found[2].startswith("gitmem thread ") and len(found) == 3
    assert steps(run("converged", both, session=planck))[0].endswith(" --wait 60s")
    run("reply", both, "Rather so.", "--counter", session=bohr)
    # The proposal in force is the one to answer.
    counter = run("converged", both, "--json").json["in_force"][0]["signal_id"]
    found = steps(run("converged", both, session=curie))
    assert found == [
        f"gitmem reply {counter} agreed --agree",
        f"gitmem reply {counter} rejected --reject",
        f"gitmem converged {counter}",
    ]


def test_who_asks_only_itself_is_not_told_to_wait(run: Run, start: Start) -> None:
    """Nobody was asked, so nobody agrees: that is said at once."""
    planck = start("Planck")
    sent = run("signal", "So?", "--to", "Planck", "--intent", "propose", session=planck)
    root = sent.out.split()[0]

    assert "This signal asks nobody" in sent.out and steps(sent)[0].startswith("gitmem thread ")
    found = run("converged", root, "--wait", "60s", session=planck)
    assert (found.status, "nobody was asked" in found.out) == (1, True)
    assert [each.split()[1] for each in steps(found)] == ["thread"]


def test_a_counter_is_for_the_first_proposer_to_answer(run: Run, start: Start) -> None:
    """Its writer has agreed to it by writing it."""
    planck, curie = start("Planck"), start("Curie")
    root = run("signal", "So?", "--to", "Curie", "--intent", "propose", "-q", session=planck).out.strip()
    said = run("reply", root, "Rather so.", "--counter", session=curie)
    counter = said.out.split()[0]
    assert steps(said)[0] == f"gitmem converged {counter} --wait 60s"
    assert steps(run("converged", counter, session=planck))[0] == f"gitmem reply {counter} agreed --agree"
    agreed = run("reply", counter, "Fine.", "--agree", session=planck)

    assert steps(agreed)[0] == f"gitmem converged {counter}" and "does not count" not in agreed.out
    said = run("converged", counter)
    assert (said.status, f'all 2 parties agreed on "Rather so." (Curie, {counter})' in said.out) == (0, True)


def test_a_recipient_in_another_clone_is_waited_for_with_sync(
    run: Run, start: Start, remote: Path, git: Git, tmp_path: Path
) -> None:
    """Its answer comes over the remote."""
    planck = start("Planck")
    run("sync", "--publish")
    other = tmp_path / "other"
    git("clone", "--quiet", str(remote), str(other))
    run("sync", "--publish", cwd=other)
    run("session", "start", "--name", "Curie", cwd=other)
    run("sync", cwd=other)
    run("sync")
    root = run("signal", "So?", "--to", "Curie", "--intent", "propose", "-q", session=planck).out.strip()

    assert steps(run("converged", root))[0].endswith(" --wait 60s --sync")


@pytest.mark.usefixtures("commits")
def test_a_broadcast_reaches_others_by_sync(run: Run, start: Start, remote: Path) -> None:
    """Said while the remote lacks it; a signal to somebody here needs none."""
    planck, _ = start("Planck"), start("Curie")

    run("sync", "--publish")
    run("setup", "--publish", "no")
    assert steps(run("signal", "Hello", session=planck))[0] == "gitmem sync --publish"
    assert "--publish" not in run("signal", "Hello", session=planck, CLAUDECODE="1").out
    run("sync", "--publish")
    assert steps(run("signal", "Hello", session=planck))[0] == "gitmem sync"
    assert "gitmem sync" not in steps(run("signal", "Hello", "--to", "Curie", session=planck))
    sent = run("signal", "Hello", "--sync", "--json", session=planck).json
    assert sent["pushed"] is True
    assert "gitmem sync" not in sent["next"]


def test_a_sync_that_sent_nothing_is_no_push(
    run: Run, start: Start, repo: Path, git: Git, tmp_path: Path
) -> None:
    """A remote without branches gets no log: recorded, not pushed, and the way on."""
    planck, _ = start("Planck"), start("Curie")
    git("init", "--quiet", "--bare", str(tmp_path / "empty.git"))
    git("remote", "add", "origin", str(tmp_path / "empty.git"), cwd=repo)
    run("sync", "--publish")

    said = run("signal", "Hello", "--to", "Curie", "--sync", "--json", session=planck)

    assert said.status == 0
    assert said.json["pushed"] is False
    assert said.json["next"][0] == "git push origin HEAD"
    assert "gitmem sync" not in said.json["next"]
    assert any("no branch yet" in each for each in said.json["warnings"])


def test_a_name_in_use_keeps_the_other_options(run: Run, start: Start) -> None:
    """And says how to go on as its holder, or to end that."""
    planck = start("Planck")
    said = run("session", "start", "--name", "planck", "--agent-identity", "a:b:c", "--lane", "two words")

    assert said.status == 2
    assert f"export GITMEM_SESSION={planck}" in said.err
    assert f"gitmem session end --as {planck}" in said.err
    begin = "gitmem session start --agent-identity a:b:c --lane 'two words' --name "
    assert [each.startswith(begin) for each in steps(said)] == [True] * 3
    assert again(run, steps(said)[0]).status == 0
    curie = start("Curie")
    refused = run("session", "set", "--name", "Planck", "--wu", "WU-7", "--json", session=curie)
    assert refused.json["next"][0].startswith("gitmem session set --wu WU-7 --name ")


def test_a_name_in_use_keeps_what_the_session_says_of_its_role(run: Run, start: Start) -> None:
    """As typed, values that clear one included; nothing that the user did not give."""
    start("Planck")
    stated = ("--role", "code-reviewer", "--scope", "docs/**", "--scope", "lane=a b", "--model", "opus", "--capabilities", "sql,go")  # fmt: skip
    said = run("session", "start", "--name", "planck", *stated)

    begin = shlex.join(["gitmem", "session", "start", *stated, "--name"])
    assert [each.startswith(begin) for each in steps(said)] == [True] * 3
    curie = start("Curie", "--wu", "WU-7", "--role", "reviewer/docs")
    refused = run("session", "set", "--name", "Planck", "--wu", "", "--role", "", session=curie)
    assert steps(refused)[0].startswith("gitmem session set --wu '' --role '' --name ")
    assert again(run, steps(refused)[0], session=curie).status == 0
    shown = run("whoami", "--json", session=curie).json
    assert (shown["wu_id"], shown["role"]) == (None, None)


def test_where_several_could_be_meant_no_command_acts_as_a_colleague(run: Run, start: Start) -> None:
    """Who runs what is offered as it stands ends nobody, and writes as nobody."""
    planck, curie = start("Planck"), start("Curie")
    said = run("signal", "It's me", "--to", "Curie")

    assert said.status == 2
    assert steps(said) == ["gitmem roster", "gitmem session start"]
    assert planck in said.err and curie in said.err
    assert [again(run, each).status for each in steps(said)] == [0, 0]
    assert run("whoami", session=planck).status == run("whoami", session=curie).status == 0


def test_an_ended_session_is_unset_only_where_it_is_set(run: Run, start: Start) -> None:
    """Advice for a variable that is not there confuses."""
    planck = start("Planck")
    assert "unset GITMEM_SESSION" in steps(run("session", "end", session=planck))
    start("Curie")
    assert "unset GITMEM_SESSION" not in steps(run("session", "end", "--as", "Curie"))
    assert "unset GITMEM_SESSION" in steps(run("inbox", session=f"{planck[:-1]}0"))
    assert "unset GITMEM_SESSION" not in steps(run("inbox", "--as", planck))


def test_the_demo_ends_with_what_works_where_its_reader_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the .venv of a checkout: how to install it. Nothing that writes there."""
    import sys

    from cli.commands import demo

    monkeypatch.setattr(sys, "prefix", str(tmp_path / "installed"))
    assert demo._next_commands("/x/project") == ["gitmem -C /x/project log", "gitmem --help"]
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.chdir(tmp_path)
    assert demo._next_commands("/x/project") == [
        ".venv/bin/gitmem -C /x/project log",
        ".venv/bin/gitmem --help",
    ]


def test_commands_inside_an_inbox_carry_place_and_actor(
    run: Run, start: Start, repo: Path, tmp_path: Path
) -> None:
    """What waits for its reader, and how to give a task back: as printed, from another folder."""
    planck, curie = start("Planck"), start("Curie")
    curies, plancks = ("-C", str(repo), "--as", "Curie"), ("-C", str(repo), "--as", "Planck")

    def taken() -> str:
        id = run("delegate", "Write it", "--to", "Curie", "-q", session=planck).out.strip()
        run("inbox", session=curie)
        assert run("task", "take", id, session=curie).status == 0
        return id

    def printed(where: tuple[str, ...], before: str) -> str:
        lines = run(*where, "inbox", cwd=tmp_path).out.splitlines()
        return next(line.partition(before)[2] for line in lines if before in line)

    first = taken()
    run("task", "message", "--ask", first, "Which year?", session=curie)
    run("inbox", session=planck)
    answer = printed(plancks, "; next: ")
    assert answer == f"gitmem -C {repo} --as Planck task show {first}"
    shown = again(run, answer, cwd=tmp_path)
    assert f"To answer: gitmem -C {repo} --as Planck task message {first} - <<'EOF'" in shown.out
    assert run("task", "message", first, "2026", session=planck).status == 0
    run("task", "done", first, "12 cases", session=curie)
    run("inbox", session=planck)
    seal = printed(plancks, "; next: ")
    assert seal == f"gitmem -C {repo} --as Planck task accept {first}"
    assert again(run, seal, cwd=tmp_path).status == 0

    second = taken()
    run("inbox", session=curie)
    run("task", "cancel", second, "No more.", session=planck)
    back = printed(curies, "To give it back: ")
    assert back == f"gitmem -C {repo} --as Curie task release {second}"
    assert again(run, back, cwd=tmp_path).status == 0


def test_an_id_of_another_kind_names_the_command_that_shows_it(run: Run, start: Start) -> None:
    """Nothing is fetched for what is here."""
    planck, _ = start("Planck"), start("Curie")
    task = run("delegate", "Write it", "--to", "Curie", "-q", session=planck).out.strip()
    node = run("mem", "create", "A fact", "-q", session=planck).out.strip()
    signal = run("signal", "Hello", "--to", "Curie", "-q", session=planck).out.strip()
    asked = [
        ("thread",),
        ("converged",),
        ("receipts",),
        ("reply", "text"),
        ("task", "show"),
        ("why",),
    ]
    for id, shows in ((task, ["task", "show"]), (node, ["show"]), (signal, ["thread"])):
        for words in asked:
            if list(words) == shows or (
                id == signal and words[0] in ("thread", "converged", "receipts", "reply")
            ):
                continue
            given = ("reply", id, "text") if words[0] == "reply" else (*words, id)
            said = run(*given, session=planck)
            assert (said.status, steps(said)) == (2, [f"gitmem {' '.join(shows)} {id}"]), (given, said)
            assert again(run, steps(said)[0], session=planck).status == 0


def test_promoting_a_node_without_a_taxonomy_tag_offers_some(run: Run, start: Start) -> None:
    """As printed, the first one promotes it."""
    planck = start("Planck")
    node = run("mem", "create", "Use vim", "--tag", "idea", "-q", session=planck).out.strip()
    said = run("mem", "promote", node, session=planck)
    assert steps(said)[0] == f"gitmem mem promote {node} --tag decision"
    assert again(run, steps(said)[0], session=planck).status == 0
