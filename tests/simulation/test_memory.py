"""Git in memory keeps the port's contract, as far as it can be asked without git itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git.port import DulwichGit, Git
from gitmem.repo import find
from tests.contracts import test_git_port as contract
from tests.contracts.test_git_port import (  # noqa: F401  (fixtures, and what is run again here)
    port,
    started,
    test_a_draft_can_start_from_another_tree,
    test_a_file_gives_way_to_a_folder_and_back,
    test_changes_apply_to_the_parent_s_tree,
    test_config_reads_the_last_value,
    test_content_is_kept_byte_for_byte,
    test_entries_reuse_objects,
    test_missing_objects_are_key_errors,
    test_odd_names_are_kept,
    test_paths_that_git_refuses_are_refused,
    test_refs_of_a_prefix,
    test_the_first_commit_is_the_same_everywhere,
    test_what_is_missing_is_never_committed,
)

from .memory import MemoryGit, Repository
from .network import MemoryNetwork


@pytest.fixture
def opened() -> Callable[[Path], Git]:
    """As the contract's own: a port to the one repository that lies in a folder."""
    known: dict[str, Repository] = {}

    def open_at(folder: Path) -> Git:
        common = find(str(folder)).common
        return MemoryGit(known.setdefault(common, Repository(common)))

    return open_at


def test_the_same_objects_as_on_the_disk(opened: Callable[[Path], Git], repo: Path) -> None:
    """The same drafts give the same ids: what a run in memory says holds of real commits."""
    drafts = [
        contract.draft(
            {"b/x": b"1", "b.y": b"2", "b-z": b"3", "s/2026-11/21/gm-a.jsonl": b"4\n"}, "no newline"
        ),
        contract.draft({"b/x": None, "ü/é": b"", "b0": b"5"}, "line\n\nbody\0nul\n\n"),
        contract.draft({"b.y": None}, ""),
    ]
    real = DulwichGit(find(str(repo)).common)

    assert opened(repo).write(drafts, None) == real.write(drafts, None)
    real.close()


def test_a_lock_and_a_moved_ref_are_lost_races(port: Git, started: str, repo: Path) -> None:  # noqa: F811
    """Whoever finds the ref elsewhere, or locked, changes nothing; an old lock can be broken."""
    first, second = port.write([contract.draft({"a": b"1"}), contract.draft({"a": b"2"})], started)
    lock = repo / ".git" / (contract.REF + ".lock")
    assert not port.swap(contract.REF, None, first, "create")
    assert not port.swap(contract.REF, first, second, "stale")
    assert port.advance(contract.REF, first, contract.draft({}), "stale") is None
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    assert not port.swap(contract.REF, started, second, "locked")
    assert not port.break_stale_lock(contract.REF, 10)
    assert port.break_stale_lock(contract.REF, -1)
    assert port.swap(contract.REF, started, second, "append")
    assert port.history(second, [started]) == [first, second]
    assert port.contains(second, first)
    assert not port.contains(first, second)
    assert not port.contains(first, contract.MISSING)


def test_a_remote_in_memory_keeps_leases(tmp_path: Path) -> None:
    """A push and a deletion count only where the ref is as expected; a fetch follows what is gone."""
    here, there = Repository(str(tmp_path)), Repository(str(tmp_path / "there"))
    git, network = MemoryGit(here), MemoryNetwork(here, {"url": there})
    one, two = git.write([contract.draft({"a": b"1"}), contract.draft({"a": b"2"})], None)
    name, outbox = "refs/heads/gitmem", "refs/gitmem/outbox/1"

    assert network.push("url", one, name, None, 1.0) == "pushed"
    assert network.push("url", two, name, None, 1.0) == "rejected"
    assert network.push("url", two, name, one, 1.0) == "pushed"
    assert network.push("url", two, name, one, 1.0) == "pushed"  # as git: it is there already
    assert network.push("url", two, outbox, None, 1.0) == "pushed"
    network.fetch("url", "refs/gitmem/remotes/origin/", 1.0)
    assert git.refs("refs/gitmem/remotes/origin/") == {
        "refs/gitmem/remotes/origin/heads/gitmem": two,
        "refs/gitmem/remotes/origin/gitmem/outbox/1": two,
    }
    network.delete("url", {outbox: one}, 1.0)
    assert outbox in there.refs
    network.delete("url", {outbox: two, "refs/gitmem/outbox/2": two}, 1.0)
    network.fetch("url", "refs/gitmem/remotes/origin/", 1.0)
    assert list(git.refs("refs/gitmem/remotes/")) == ["refs/gitmem/remotes/origin/heads/gitmem"]
