"""`doctor --fix`: whatever happened to the ref, the objects, the index or what waits, what was acknowledged comes back."""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitmem.doctor import doctor
from gitmem.doctor.doctor import Report
from gitmem.errors import StoreError
from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.git.port import DulwichGit
from gitmem.log import attestations, committer, lines, ref
from gitmem.log.lines import CommitMessage, LogEntry, line_hash

from .. import newer_git
from ..clones import Clone, Hub, Ticks, git
from ..conftest import Git
from ..loose_objects import loosen, path_of, wipe
from .conftest import Desk, Said, powerless, process
from .faults import ALL_STEPS, SystemCall, age_locks, child

WORDS = [f"word {number}" for number in range(6)]
LATE = ["late one", "late two"]
WHO = Signature("somebody", "somebody@example.org", 1)


@pytest.fixture
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub, a clone whose log has a few lines that its index knows, and a copy of its git folder from before the last.

    Made by the first test that wants it, for all.
    """
    root = tmp_path_factory.getbasetemp() / "before-fix"
    if root.exists():
        return root
    root.mkdir()
    hub = Hub(root)
    clone = hub.clone("a")
    for word in WORDS:
        clone.add(word)
    clone.store.db()
    shutil.copytree(clone.path / ".git", root / "backup")
    for word in LATE:
        clone.add(word)
    clone.store.db()
    hub.close()
    shutil.rmtree(root / "first")
    return root


@pytest.fixture
def hub(before: Path, tmp_path: Path) -> Iterator[Hub]:
    root = tmp_path / "all"
    shutil.copytree(before, root, symlinks=True)
    for config in root.rglob("config"):
        config.write_text(config.read_text().replace(str(before), str(root)))
    hub = Hub.__new__(Hub)
    hub.root, hub.path, hub.now, hub.clones = root, root / "hub.git", Ticks(), []
    hub.now.micros += 1_000_000_000
    hub.port = DulwichGit
    yield hub
    hub.close()


@pytest.fixture
def clone(hub: Hub) -> Clone:
    return hub.open(hub.root / "a")


def anew(hub: Hub, clone: Clone) -> Clone:
    """The same clone, in another process."""
    clone.store.close()
    return hub.open(clone.path)


def look(clone: Clone) -> None:
    """What any hook does: the index follows the ref."""
    clone.store.db()


def record(clone: Clone, text: str, *, deferred: bool = False) -> None:
    """A line that waits for its commit."""
    fields = {"at": lines.format_at(clone.log.clock.tick()), "kind": "note", "text": text}
    line = json.dumps(fields, separators=(",", ":")).encode()
    entry = LogEntry([("notes", line)], CommitMessage("a <a@agents>", text), deferred=deferred)
    clone.log.append(entry)


def generations(clone: Clone) -> list[Path]:
    """The files with lines that wait for their commit."""
    return [Path(file.path) for file in clone.log.waiting(deferred=True)]


def shown(clone: Clone) -> str:
    """All lines that an answer may have."""
    return " ".join(body for (body,) in clone.store.db().execute("SELECT body FROM line"))


def move_back(clone: Clone) -> None:
    git("update-ref", ref.LOG_REF, f"{ref.LOG_REF}~3", cwd=clone.path)


def delete(clone: Clone) -> None:
    git("update-ref", "-d", ref.LOG_REF, cwd=clone.path)


def prune(clone: Clone) -> None:
    git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all", cwd=clone.path)
    git("gc", "--quiet", "--prune=now", cwd=clone.path)


def forget_index(clone: Clone) -> None:
    for path in (clone.path / ".git/gitmem").glob("index-*"):
        path.unlink()


def pack_and_edit(clone: Clone) -> None:
    old = git("rev-parse", f"{ref.LOG_REF}~3", cwd=clone.path).strip()
    git("pack-refs", "--all", cwd=clone.path)
    path = clone.path / ".git/packed-refs"
    rows = path.read_text().splitlines()
    path.write_text(
        "".join(f"{old} {ref.LOG_REF}\n" if row.endswith(ref.LOG_REF) else row + "\n" for row in rows)
    )


def empty_ref(clone: Clone) -> None:
    (clone.path / ".git" / ref.LOG_REF).write_bytes(b"")


def to_main(clone: Clone) -> None:
    git("update-ref", ref.LOG_REF, "main", cwd=clone.path)


def put_back(folder: str) -> Callable[[Clone], None]:
    """An old copy of a part of .git is put in place of what there is."""

    def act(clone: Clone) -> None:
        kept = clone.path.parent / "backup"
        source = clone.path / ".git" / folder
        shutil.rmtree(source) if source.is_dir() else source.unlink()
        (shutil.copytree if source.suffix == "" and (kept / folder).is_dir() else shutil.copy2)(
            kept / folder, source
        )

    return act


def empty_objects(*revisions: str, but: str = "") -> Callable[[Clone], None]:
    """A disk that has lost what objects were in packs."""

    def act(clone: Clone) -> None:
        wanted = [git("rev-parse", f"{ref.LOG_REF}{each}", cwd=clone.path).strip() for each in revisions]
        if but:
            listed = git("rev-list", "--objects", ref.LOG_REF, f"^{ref.LOG_REF}{but}", cwd=clone.path)
            wanted += [row.split(" ")[0] for row in listed.splitlines()]
        wipe(clone.path / ".git", wanted)

    return act


def empty_file(clone: Clone) -> None:
    """A power loss: the newest commit is an object in a file, and that is empty."""
    loosen(clone.path / ".git")
    path = path_of(clone.path / ".git", clone.tip or "")
    path.chmod(0o644)
    path.write_bytes(b"")


ACCIDENTS: dict[str, list[Callable[[Clone], None]]] = {
    "moved back": [move_back],
    "moved back, and read": [move_back, look],
    "moved back, index deleted": [forget_index, move_back],
    "moved back and pruned": [move_back, prune],
    "deleted": [delete],
    "deleted, and read": [delete, look],
    "deleted, index deleted": [delete, forget_index],
    "deleted and pruned": [delete, prune],
    "deleted, read and pruned": [delete, look, prune],
    "packed-refs edited": [pack_and_edit],
    "ref file empty": [empty_ref],
    "ref file empty, index deleted": [empty_ref, forget_index],
    "at a branch": [to_main],
    "newest commit empty": [empty_objects("")],
    "newest commit loose and empty": [empty_file],
    "newest tree empty": [empty_objects("^{tree}")],
    "newest segment empty": [empty_objects(but="~1")],
    "newest commits with all of theirs empty": [empty_objects(but="~3")],
    "newest commits empty, read": [empty_objects(but="~3"), look],
    "an old commit empty": [empty_objects("~4")],
    "everything of the log empty": [empty_objects(but="~8")],
    "old refs put in place": [put_back("refs")],
    "old refs and logs put in place": [put_back("refs"), put_back("logs")],
}


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_what_was_acknowledged_is_found_and_comes_back(hub: Hub, clone: Clone, accident: str) -> None:
    """Once, on a linear history, and a second run has nothing to do."""
    for act in ACCIDENTS[accident]:
        act(clone)
    clone = anew(hub, clone)

    found = doctor.fix(clone.store)

    assert found.status == 0 and found.fixed, found
    assert any(each.severity == "problem" and each.state == "fixed" for each in found.findings)
    assert clone.texts() == [*WORDS, *LATE]
    assert clone.merges() == 0
    clone = check_whole(hub, clone)
    if "empty" in accident:
        git("gc", "--quiet", cwd=clone.path)


def check_whole(hub: Hub, clone: Clone) -> Clone:
    """Nothing is left to mend, git has nothing to complain of, and the log can be written."""
    tip = clone.tip
    clone = anew(hub, clone)
    again = doctor.fix(clone.store)
    assert (again.status, again.fixed, clone.tip) == (0, 0, tip), again
    git("fsck", "--strict", "--no-dangling", cwd=clone.path)
    clone.add("afterwards")
    return clone


@pytest.mark.parametrize(
    "accident", ["deleted and pruned", "newest commits with all of theirs empty", "at a branch"]
)
def test_a_log_that_was_mended_can_be_sent(hub: Hub, clone: Clone, accident: str) -> None:
    """To a remote that has some of it."""
    git("push", "--quiet", "origin", f"{ref.LOG_REF}~2:{ref.BRANCH}", cwd=clone.path)
    for act in ACCIDENTS[accident]:
        act(clone)
    clone = anew(hub, clone)
    assert doctor.fix(clone.store).status == 0
    assert clone.exchange().state == "synced"
    assert hub.texts() == clone.texts() == [*WORDS, *LATE]


def states(found: Report) -> dict[str, str]:
    """Of the codes that were found; that the lines are of no kind that gitmem knows is as it should be here."""
    return {each.code: each.state for each in found.findings if each.code != "unknown-kind"}


def test_commits_that_were_taken_off_are_put_back_as_they_were(hub: Hub, clone: Clone) -> None:
    """With their authors, dates and subjects; where something was written since, as one commit that lists them."""
    story, tip = clone.subjects(), clone.tip
    move_back(clone)
    clone = anew(hub, clone)

    doctor.fix(clone.store)

    assert (clone.tip, clone.subjects()) == (tip, story)
    move_back(clone)
    clone.add("meanwhile")
    clone = anew(hub, clone)
    doctor.fix(clone.store)
    assert clone.subjects() == [f"{story[2]} +2", "meanwhile", *story[3:]]
    assert git("log", "-1", "--format=%b", clone.tip, cwd=clone.path).splitlines()[:3] == story[2::-1]


def test_a_move_that_no_reflog_tells_is_found_by_its_gap(hub: Hub, clone: Clone) -> None:
    """Somebody edited packed-refs, and others wrote on; no index is left."""
    pack_and_edit(clone)
    forget_index(clone)
    clone = anew(hub, clone)
    clone.add("meanwhile")

    doctor.fix(anew(hub, clone).store)

    assert clone.texts() == [*WORDS, *LATE, "meanwhile"]


def test_from_the_index_only_exact_bytes_come_back(hub: Hub, clone: Clone) -> None:
    """It keeps of a line that is no text what can be shown: that is not the line."""
    odd = {"notes/2026-11/21/gm-odd.jsonl": b"\xff\xfe is no text\n"}
    assert clone.git.advance(ref.LOG_REF, clone.tip, Draft(odd, WHO, WHO, "By hand\n"), "append")
    look(clone)
    delete(clone)
    prune(clone)
    clone = anew(hub, clone)

    doctor.fix(clone.store)

    assert clone.texts() == [*WORDS, *LATE]


def test_what_others_wrote_comes_back_too(hub: Hub, clone: Clone) -> None:
    """It was never acknowledged here; the reflog's last line has it."""
    other = hub.clone("b")
    for number in range(3):
        other.add(f"theirs {number}")
    other.exchange()
    clone.exchange()
    pack_and_edit(clone)
    forget_index(clone)
    clone = anew(hub, clone)

    assert states(doctor.fix(clone.store)) == {"lost-lines": "fixed"}

    assert clone.texts() == [*WORDS, *LATE, *(f"theirs {number}" for number in range(3))]


def test_what_was_dropped_before_the_log_was_moved_back_comes_back(hub: Hub, clone: Clone) -> None:
    """The commits that are put on the log again are looked at as well."""
    path = next(
        each
        for each in git("ls-tree", "-r", "--name-only", ref.LOG_REF, cwd=clone.path).split()
        if "gm-" in each
    )
    content = git("cat-file", "blob", f"{ref.LOG_REF}:{path}", cwd=clone.path).encode()
    fewer = b"".join(content.splitlines(keepends=True)[1:])
    assert clone.git.advance(ref.LOG_REF, clone.tip, Draft({path: fewer}, WHO, WHO, "By hand\n"), "append")
    move_back(clone)
    clone = anew(hub, clone)

    assert doctor.fix(clone.store).status == 0

    assert clone.texts() == [*WORDS, *LATE]


@pytest.mark.parametrize("what", ["a link", "a folder"])
def test_lines_come_back_beside_what_stands_in_their_place(hub: Hub, clone: Clone, what: str) -> None:
    """Somebody put something else where their segment was: that stays."""
    path = next(
        each
        for each in git("ls-tree", "-r", "--name-only", ref.LOG_REF, cwd=clone.path).split()
        if "gm-" in each
    )
    note = b'{"at":"2026-11-21T20:00:00.123456Z","kind":"note","text":"in a folder"}\n'
    if what == "a link":
        (clone.path / "target").write_bytes(note)
        oid = git("hash-object", "-w", "target", cwd=clone.path).strip()
        change: dict[str, bytes | TreeEntry | None] = {path: TreeEntry("120000", oid)}
    else:
        change = {path: None, f"{path}/gm-inner.jsonl": note}
    assert clone.git.advance(ref.LOG_REF, clone.tip, Draft(change, WHO, WHO, "By hand\n"), "append")
    clone = anew(hub, clone)

    assert doctor.fix(clone.store).status == 0

    assert sorted(clone.texts()) == sorted([*WORDS, *LATE, "in a folder"])
    kept = git("ls-tree", "-r", ref.LOG_REF, cwd=clone.path)
    assert (f"120000 blob {oid}\t{path}" if what == "a link" else f"{path}/gm-inner.jsonl") in kept


def test_what_a_remote_has_comes_back_by_a_sync(hub: Hub, clone: Clone) -> None:
    """Here nothing is left of it: not in the reflog, not in the index, no object. That is said, and no more."""
    clone.exchange()
    move_back(clone)
    for name in git("for-each-ref", "--format=%(refname)", "refs/gitmem/remotes", cwd=clone.path).split():
        git("update-ref", "-d", name, cwd=clone.path)
    git("update-ref", "-d", "refs/gitmem/published", cwd=clone.path)
    forget_index(clone)
    prune(clone)
    clone = anew(hub, clone)

    found = doctor.fix(clone.store)

    assert states(found)["gone-lines"] == "needs-you" and found.status == 1
    assert found.next[0] == "gitmem sync"
    assert clone.exchange().received == 3
    assert doctor.examine(anew(hub, clone).store).healthy


def test_a_remote_that_was_rewound_takes_nothing_back(hub: Hub, clone: Clone) -> None:
    """Also where this clone's ref was moved back with it."""
    clone.exchange()
    git("update-ref", ref.BRANCH, f"{ref.BRANCH}~3", cwd=hub.path)
    clone.exchange()
    assert hub.texts() == [*WORDS, *LATE]
    git("update-ref", ref.BRANCH, f"{ref.BRANCH}~3", cwd=hub.path)
    move_back(clone)
    clone = anew(hub, clone)

    assert doctor.fix(clone.store).status == 0
    clone.exchange()

    assert hub.texts() == clone.texts() == [*WORDS, *LATE]


def test_an_old_copy_of_the_whole_git_folder_is_a_clone_of_then(hub: Hub, clone: Clone) -> None:
    """What it never had is brought by a sync, and lines that are new go beside it."""
    clone.exchange()
    clone.store.close()
    shutil.rmtree(clone.path / ".git")
    shutil.copytree(hub.root / "backup", clone.path / ".git")
    clone = anew(hub, clone)
    assert doctor.fix(clone.store).status == 0

    clone.add("later")
    clone.exchange()

    assert hub.texts() == clone.texts() == [*WORDS, *LATE, "later"]


@pytest.mark.parametrize("reads", [0, 1])
@pytest.mark.parametrize("deferred", [False, True], ids=["to be committed", "deferred"])
def test_a_line_comes_back_whose_generation_was_deleted(
    hub: Hub, clone: Clone, reads: int, deferred: bool
) -> None:
    """It waited for its commit: the index has it, and keeps it when it follows."""
    clone.store.commit_after = 60.0  # else who looks commits
    record(clone, "waits", deferred=deferred)
    look(clone)
    (path,) = generations(clone)
    path.unlink()
    clone = anew(hub, clone)
    for _ in range(reads):
        look(clone)

    assert states(doctor.fix(clone.store)) == {"lost-lines": "fixed"}

    assert clone.texts() == [*WORDS, *LATE, "waits"]


def test_what_was_voided_does_not_come_back(hub: Hub, clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write failed and said so; that the index had seen the line does not make it acknowledged."""
    real, seen = os.fdatasync, []

    def fails_once(handle: int) -> None:
        if seen:
            return real(handle)
        other = hub.open(clone.path)  # another process catches up, and finds the record
        other.store.commit_again = math.inf  # it only reads
        rows = other.store.db().execute("SELECT body FROM line").fetchall()
        seen.extend(body for (body,) in rows if "voided" in body)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fails_once)
        with pytest.raises(StoreError, match="Nothing was recorded"):
            record(clone, "voided")
    assert len(seen) == 1
    clone = anew(hub, clone)
    look(clone)
    assert "voided" not in shown(clone)

    assert doctor.fix(clone.store).fixed == 0
    clone.add("after")
    assert clone.texts() == [*WORDS, *LATE, "after"]


def test_a_damaged_generation_is_put_aside_and_its_whole_lines_are_kept(hub: Hub, clone: Clone) -> None:
    """One whose checksum is wrong, one that is torn, and a foreign file beside them; none is deleted."""
    for text in ("checksum", "whole"):
        record(clone, text)
    (path,) = generations(clone)
    content = path.read_bytes()
    at = content.index(b"[") - 2  # the last digit of the first record's checksum
    other = b"1" if content[at : at + 1] == b"0" else b"0"
    path.write_bytes(content[:at] + other + content[at + 1 :] + content[:100])
    (path.parent / "notes.txt").write_text("mine\n")
    clone = anew(hub, clone)
    committer.commit_waiting(clone.log)
    assert clone.texts() == [*WORDS, *LATE, "whole"]

    found = doctor.fix(clone.store)

    assert states(found) == {"lost-lines": "fixed", "wal-file": "fixed"}
    assert clone.texts() == [*WORDS, *LATE, "checksum", "whole"]
    kept = {each.name.partition("-")[2]: each for each in (clone.path / ".git/gitmem/aside").iterdir()}
    assert kept["notes.txt"].read_text() == "mine\n" and f"{path.name}.damaged" in kept
    told = [each for each in found.findings if each.code == "wal-file"]
    assert len(told) == 2
    assert all(str(kept[os.path.basename(each.where)]) in each.did for each in told)


def test_the_form_of_the_files_is_put_right_in_one_commit(hub: Hub, clone: Clone) -> None:
    """Line ends, order, repeats, and lines that somebody deleted. What nobody can read stays."""
    row = git("ls-tree", "-r", ref.LOG_REF, cwd=clone.path).split("gm-")[1]
    path = next(
        each
        for each in git("ls-tree", "-r", "--name-only", ref.LOG_REF, cwd=clone.path).split()
        if "gm-" in each
    )
    assert row
    content = git("cat-file", "blob", f"{ref.LOG_REF}:{path}", cwd=clone.path).encode()
    first, second, *rest = content.splitlines(keepends=True)
    odd = b"".join([*rest, second, b"<<<<<<< HEAD\n", second]).replace(b"\n", b"\r\n")
    drafts = {path: odd, "README.md": None, "projects": None}
    assert clone.git.advance(ref.LOG_REF, clone.tip, Draft(drafts, WHO, WHO, "By hand\n"), "append")
    tip = clone.tip
    clone = anew(hub, clone)

    found = doctor.fix(clone.store)

    assert found.status == 0 and states(found)["conflict-marker"] == "left", found
    assert {code for code, state in states(found).items() if state == "fixed"} == {
        "crlf", "dropped-lines", "fixed-file", "no-project",
    }  # fmt: skip
    assert clone.git.commit(clone.tip).parents == [tip]
    assert clone.git.commit(clone.tip).message == "Repair: 1 line that was missing\n"
    repaired = git("cat-file", "blob", f"{ref.LOG_REF}:{path}", cwd=clone.path).encode()
    kept = [b"<<<<<<< HEAD\n", *content.splitlines(keepends=True)]
    (made,) = set(repaired.splitlines(keepends=True)) - set(kept)
    again = attestations.read(made.rstrip(b"\n"))
    assert again is not None and again.digests == {line_hash(first.rstrip(b"\n"))}
    assert repaired == b"".join(sorted([*kept, made]))
    assert doctor.fix(anew(hub, clone).store).fixed == 0


def test_a_log_that_a_peer_replaced_with_a_later_epoch_comes_back(hub: Hub, clone: Clone) -> None:
    """What was there before, what was written since, and the ledger's lines are united."""
    clone.exchange()
    before, tip = clone.texts(), clone.tip
    root = clone.git.write([ref.genesis_draft()], None)[-1]
    files = ref.fixed_files(b'{"format":1,"epoch":1}\n', [])
    new = clone.git.write([Draft(files, WHO, WHO, "Epoch 1\n")], root)[-1]
    assert clone.git.swap(ref.LOG_REF, tip, new, "sync")
    clone.add("written since")
    clone = anew(hub, clone)
    with pytest.raises(StoreError) as refused:
        clone.exchange()
    assert (refused.value.code, refused.value.next) == ("bad-epoch", ["gitmem doctor --fix"])

    found = doctor.fix(clone.store)

    assert states(found)["bad-epoch"] == "fixed", found
    assert sorted(clone.texts()) == sorted([*before, "written since"])
    form = git("cat-file", "blob", f"{ref.LOG_REF}:format", cwd=clone.path)
    assert '"epoch":0' in form
    assert clone.exchange().state == "synced"


def test_a_log_of_another_project_that_the_ref_was_at_is_not_united(
    hub: Hub, clone: Clone, tmp_path: Path
) -> None:
    """Nor is a branch of the user's, whatever files it has."""
    other = tmp_path / "other"
    git("init", "--quiet", "-b", "main", str(other), cwd=tmp_path)
    (other / "format").write_text("{}")
    (other / "x.jsonl").write_text('{"at":"2026-11-21T20:00:00.123456Z","kind":"note","text":"theirs"}\n')
    git("add", ".", cwd=other)
    git("commit", "--quiet", "-m", "Another first", cwd=other)
    theirs = hub.open(other)
    theirs.add("of another project")
    for name in ("refs/gitmem/log", "main"):
        git("fetch", "--quiet", str(other), f"{name}:refs/heads/theirs", "--force", cwd=clone.path)
        git("update-ref", ref.LOG_REF, "theirs", cwd=clone.path)
        look(clone) if name != "main" else None
        clone = anew(hub, clone)
        assert doctor.fix(clone.store).status == 0
        assert clone.texts() == [*WORDS, *LATE]


def test_locks_and_files_of_the_dead_go(hub: Hub, clone: Clone) -> None:
    """Files are moved aside, and the user's own lock is left to the user."""
    common, tip = clone.path / ".git", clone.tip
    old = time.time() - 3600
    for name in (
        "refs/gitmem/log.lock",
        "gitmem/.tmp-segment-1",
    ):
        (common / name).parent.mkdir(exist_ok=True)
        (common / name).touch()
        os.utime(common / name, (old, old))
    clone = anew(hub, clone)

    found = doctor.fix(clone.store)

    assert found.status == 0
    assert states(found) == {"stale-lock": "fixed", "leftover-file": "fixed"}
    assert clone.tip == tip
    check_whole(hub, clone)


def test_a_clone_that_cannot_be_written_says_so(
    hub: Hub, clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is changed, and each finding says why."""
    move_back(clone)
    tip = clone.tip
    monkeypatch.setattr(clone.log, "make_state", lambda: False)

    found = doctor.fix(clone.store)

    (finding,) = [each for each in found.findings if each.code == "lost-lines"]
    assert finding.state == "needs-you" and "cannot be written" in finding.did
    assert found.status == 1 and clone.tip == tip


@pytest.mark.parametrize("name", ["packed-refs", "config", "shallow"])
def test_a_lock_that_may_be_the_users_is_left(hub: Hub, clone: Clone, name: str) -> None:
    """With the command that removes it."""
    lock = clone.path / ".git" / f"{name}.lock"
    lock.touch()
    os.utime(lock, (1, 1))

    found = doctor.fix(clone.store)

    assert states(found) == {"stale-lock": "needs-you"} and found.status == 1
    assert found.next[0] == f"rm {lock}" and lock.exists()


def test_copies_of_a_remote_that_are_damaged_are_forgotten(hub: Hub, clone: Clone) -> None:
    """And what is brought anew is whole."""
    clone.exchange()
    clone.add("after the sync")
    git("repack", "-adq", cwd=clone.path)
    other = hub.clone("b")
    other.add("from elsewhere")
    other.exchange()
    clone.exchange()
    empty_objects("")(clone)
    clone = anew(hub, clone)

    assert doctor.fix(clone.store).status == 0
    assert clone.exchange().state in ("synced", "up-to-date")

    assert set(clone.texts()) == set(hub.texts()) == {*WORDS, *LATE, "after the sync", "from elsewhere"}


def test_a_copy_that_is_damaged_while_the_log_is_not(hub: Hub, clone: Clone) -> None:
    """What a fetch had brought and no sync had taken in."""
    clone.exchange()
    other = hub.clone("b")
    other.add("from elsewhere")
    other.exchange()
    kept = "refs/gitmem/remotes/origin/heads/gitmem"
    git("fetch", "--quiet", "origin", f"+{ref.BRANCH}:{kept}", cwd=clone.path)
    oid = git("rev-parse", kept, cwd=clone.path).strip()
    loosen(clone.path / ".git")
    path = path_of(clone.path / ".git", oid)
    path.chmod(0o644)
    path.write_bytes(b"")
    clone = anew(hub, clone)

    found = doctor.fix(clone.store)

    assert states(found)["damaged-copy"] == "fixed" and found.status == 0, found
    assert clone.exchange().received == 1
    assert clone.texts() == hub.texts()


def bent(clone: Clone) -> None:
    """Much at once."""
    clone.add("rides", deferred=True)
    content = b"".join(
        b'{"at":"2026-11-21T20:00:00.12345%dZ","kind":"note","text":"%d"}\r\n' % (each, each)
        for each in (1, 0)
    )
    assert clone.git.advance(
        ref.LOG_REF, clone.tip, Draft({"notes/x.jsonl": content}, WHO, WHO, "By hand\n"), "append"
    )
    git("update-ref", ref.LOG_REF, f"{ref.LOG_REF}~1", cwd=clone.path)
    clone.add("meanwhile")
    git("update-ref", ref.LOG_REF, f"{ref.LOG_REF}~4", cwd=clone.path)
    (clone.path / ".git/gitmem/wal/half").touch()


def fixing(where: Path) -> Callable[[], str]:
    def act() -> str:
        hub = Hub.__new__(Hub)
        hub.now, hub.clones, hub.port = Ticks(), [], DulwichGit
        return json.dumps(doctor.fix(hub.open(where).store).as_json())

    return act


@pytest.mark.parametrize(
    "step", [12, 45, 66, 80, *(pytest.param(step, marks=pytest.mark.deep) for step in (30, 58, 74, 87))]
)
def test_killed_at_any_step_the_next_run_ends_it(hub: Hub, clone: Clone, step: int) -> None:
    """Every line once, those that waited too."""
    bent(clone)
    clone.store.close()

    end = child(fixing(clone.path), SystemCall(step, ALL_STEPS, kills=True))
    age_locks(clone.path)
    again = child(fixing(clone.path))

    assert end.died, f"{end.steps} steps"
    clone = anew(hub, clone)
    assert json.loads(again.answer)["healthy"], again.answer
    assert sorted(clone.texts()) == sorted(["0", "1", *WORDS, *LATE, "rides", "meanwhile"])
    check_whole(hub, clone)


def test_writers_go_on_while_it_is_mended(hub: Hub, clone: Clone) -> None:
    """What they write meanwhile is there once, as is what comes back."""
    move_back(clone)
    clone.store.close()
    said: list[str] = []

    def write(number: int) -> None:
        mine = hub.open(clone.path)
        for each in range(5):
            mine.add(f"writer {number} {each}")
            said.append(f"writer {number} {each}")

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    other = hub.open(clone.path)
    while any(writer.is_alive() for writer in writers):
        doctor.fix(other.store)
    for writer in writers:
        writer.join()
    clone = hub.open(clone.path)

    assert doctor.fix(clone.store).status == 0
    assert sorted(clone.texts()) == sorted([*WORDS, *LATE, *said]) and len(said) == 15


@pytest.mark.parametrize(
    ("kind", "accident"),
    [
        ("--ref-format=reftable", "moved back"),
        ("--ref-format=reftable", "deleted"),
        ("--object-format=sha256", "newest commits empty, read"),
    ],
)
def test_other_kinds_of_repositories_are_mended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, accident: str
) -> None:
    """Where refs are no files, and where ids are longer."""
    newer_git.put_on_path(tmp_path, monkeypatch)
    path = tmp_path / "odd"
    git("init", "--quiet", "-b", "main", kind, str(path), cwd=tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "First", cwd=path)
    hub = Hub.__new__(Hub)
    hub.now, hub.clones, hub.port = Ticks(), [], DulwichGit
    clone = hub.open(path)
    for word in WORDS:
        clone.add(word)
    look(clone)
    for act in ACCIDENTS[accident]:
        act(clone)
    clone = anew(hub, clone)

    found = doctor.fix(clone.store)

    assert found.status == 0 and found.fixed, found
    assert clone.texts() == WORDS
    hub.close()


# What doctor and failed commands advise can be done where they are: no command that fails in the same way, no circle.

WRITES = ("gitmem setup", "gitmem doctor --fix", "gitmem sync", "git update-ref", "rm ")


def codes(said: Said) -> dict[str, dict[str, str]]:
    return {each["code"]: each for each in said.json["findings"]}


@pytest.mark.parametrize("fix", [[], ["--fix"]])
def test_where_the_git_folder_is_read_only_doctor_advises_nothing_that_writes_it(
    desk: Desk, git: Git, fix: list[str]
) -> None:
    session = desk.start("Planck")
    desk.send(session, "Said before.", "--broadcast")
    git(
        "update-ref", "refs/heads/gitmem", "refs/gitmem/log", cwd=desk.repo
    )  # who has it may merge it by hand
    folder = desk.repo / ".git"
    every = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in every:
        path.chmod(0o555)
    try:
        env = {"GITMEM_SESSION": session}
        sent = process("signal", "Hi", "--broadcast", "--json", cwd=desk.repo, env=env, before=powerless)
        assert (
            sent.json["recorded"]
            and len([each for each in sent.json["warnings"] if "waiting in" in each]) == 1
        )
        said = process("doctor", *fix, "--json", cwd=desk.repo, env=env, before=powerless)
    finally:
        for path in every:
            path.chmod(0o755)

    found = codes(said)
    assert "read-only" in found and "not-checked" not in found, said
    assert not [each for each in said.json["next"] if each.startswith(WRITES)], said
    assert not [each for each in found.values() if each["command"].startswith(WRITES)]
    assert "Once the git folder is writable, run `gitmem setup" in found["driver-missing"]["fix"]


@pytest.mark.parametrize("args", [["doctor"], ["doctor", "--fix"], ["setup"], ["signal", "Hi"]])
def test_a_config_that_git_refuses_is_named_with_its_line(desk: Desk, args: list[str]) -> None:
    session = desk.start("Planck")
    config = desk.repo / ".git" / "config"
    config.write_text(config.read_text() + "[broken\n")

    said = desk(*args, "--json", session=session)

    assert said.status == 4 and said.error["code"] == "bad-config"
    assert str(config) in said.error["message"] and "line" in said.error["message"]


def test_a_doctor_that_fails_does_not_send_to_itself(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from gitmem.doctor import doctor
    from gitmem.errors import StoreError

    def fail(*_: object) -> None:
        raise StoreError("The disk is full.", next=["gitmem doctor"])

    desk.start("Planck")
    monkeypatch.setattr(doctor, "examine", fail)

    assert desk("doctor", "--json").json["next"] == ["git fsck"]
