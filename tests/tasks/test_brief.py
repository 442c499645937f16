"""R18: the attestation of a brief, and what `verify` says about the file that is there now."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import gitmem
from gitmem.store import Store
from gitmem.work import new_task, task_list, task_roles
from tests.sandbox import Agent

PLANNER, BOHR = "codex:planner:one", "claude:worker:bohr"
TEXT = "twelve cases\n"


def attested(store: Store, repo: Path, **payload: object) -> str:
    """A task with a brief, or with another statement about it in its payload; its id."""
    (repo / "brief.md").write_text(TEXT)
    planner = Agent(store, PLANNER, client="codex").caller
    options = task_roles.attest_brief(store.repo.worktree, "brief.md", planner)
    if payload:
        options["payload"] = dict(payload)
    made = new_task.create(store, planner, "Write it", target_role="implementer/test", **options)  # type: ignore[arg-type]
    return str(made.task["task_id"])


def test_r18_a_brief_is_attested_with_digest_length_time_and_client(store: Store, repo: Path) -> None:
    """All four are in the record, and a matching file says so."""
    task_id = attested(store, repo)

    found = task_roles.verify_brief(store, task_id[:12])

    assert (found.status, found.path, found.sentence) == ("matches", "brief.md", None)
    assert found.attested_sha256 == found.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
    assert (found.attested_length, found.length, found.attested_client) == (13, 13, "codex")
    assert found.attested_at == task_list.show(store, task_id).task["created_at"]
    assert found.next == [f"gitmem task show {task_id}"]


@pytest.mark.parametrize("change", ["changed", "missing", "folder", "link", "binary"])
def test_r18_a_changed_brief_and_a_missing_one_are_told_apart(
    change: str, store: Store, repo: Path, tmp_path: Path
) -> None:
    """A file that can't be read safely is missing; nothing outside of the work tree is read."""
    task_id = attested(store, repo)
    path = repo / "brief.md"
    if change != "changed":
        path.unlink()
    if change == "changed":
        path.write_text("one case\n")
    elif change == "folder":
        path.mkdir()
    elif change == "link":
        (tmp_path / "copy").write_text(TEXT)
        path.symlink_to(tmp_path / "copy")
    elif change == "binary":
        path.write_bytes(b"a\0b")

    found = task_roles.verify_brief(store, task_id)

    assert found.status == ("changed" if change == "changed" else "missing")
    assert (found.sha256 is None, found.reason is None) == (change != "changed", change == "changed")
    assert found.sentence in task_list.show(store, task_id).warnings


def test_r18_another_file_may_be_the_brief(store: Store, repo: Path) -> None:
    """It may have moved since, or lie in another worktree; line ends do not count."""
    task_id = attested(store, repo)
    (repo / "brief.md").rename(repo / "moved.md")
    (repo / "moved.md").write_bytes(TEXT.replace("\n", "\r\n").encode())
    assert task_roles.verify_brief(store, task_id).status == "missing"
    assert task_roles.verify_brief(store, task_id, "moved.md").status == "matches"


def test_r18_a_task_without_a_brief_is_refused_with_the_command_that_attests_one(
    repo: Path, store: Store
) -> None:
    """In the library, too, with the same code."""
    with gitmem.open(str(repo), identity=PLANNER) as log:
        task_id = str(log.tasks.delegate("x", target_role="implementer/test", wu="WU-7").task["task_id"])
        with pytest.raises(gitmem.UsageError, match="No brief is attested") as refused:
            log.tasks.verify(task_id)
    assert refused.value.code == "no-brief" and "--brief FILE" in str(refused.value.hint)


@pytest.mark.parametrize(
    "stated", ["text", {"length": "13"}, {"length": True, "client": ["x"]}, {"client": "x" * 9_000}]
)
def test_a_peers_statement_about_a_brief_of_any_form_is_read(
    stated: object, store: Store, repo: Path
) -> None:
    """The payload is the text of a peer; the digest decides."""
    found = task_roles.verify_brief(store, attested(store, repo, brief=stated))
    assert (found.status, found.attested_length) == ("matches", None)
    assert len(found.attested_client or "") <= task_roles.CLIENT_MAX


def test_a_brief_of_a_million_characters_is_refused_with_its_limit(store: Store, repo: Path) -> None:
    """Before anything is written; one of the greatest size is accepted."""
    path = repo / "brief.md"
    path.write_text("x" * 1_000_000)
    with pytest.raises(
        gitmem.UsageError, match=r"brief.md: it is larger than 256 KiB\. Nothing was written"
    ) as refused:
        task_roles.attest_brief(store.repo.worktree, "brief.md")
    assert "at most 256 KiB" in str(refused.value.hint)
    path.write_text("x" * task_roles.BRIEF_MAX)
    assert task_roles.attest_brief(store.repo.worktree, "brief.md")["payload"]["brief"] == {
        "length": task_roles.BRIEF_MAX
    }
