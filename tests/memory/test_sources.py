"""The index of sources: one node for each file, whoever indexes it, and nothing in a file stops the others."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.errors import UsageError
from gitmem.log.lines import format_at
from gitmem.memory import edit, sources, stored_nodes, triage
from gitmem.order.node import VersionedNode
from gitmem.store import Store

from ..sandbox import MINUTE, Clock, bodies, carry, new_repo, open_store
from .desk import me


def index(store: Store, *given: str, **options: bool) -> sources.Indexed:
    return sources.index(store, me(store), sources=given, **options)


def of(store: Store, path: str) -> VersionedNode:
    return stored_nodes.load_one(store.db(), sources.node_id(path))


def test_each_source_is_one_project_summary_with_its_provenance(
    store: Store, repo: Path, clock: Clock, git: Callable[..., str]
) -> None:
    (repo / "README.md").write_text("# Gears\n\nTurns things.\n")
    (repo / ".lumenflow").mkdir()
    (repo / ".lumenflow" / "constraints.md").write_text("Never block.\n")

    done = index(store)

    node = of(store, "README.md")
    assert (node.type, node.lifecycle, node.tags, node.paths) == (
        "summary", "project", ["index:architecture"], ["README.md"],
    )  # fmt: skip
    assert node.content == "README.md: Gears\n\nTurns things."
    assert node.metadata == {
        "source_path": "README.md",
        "source_hash": hashlib.sha256(b"# Gears\n\nTurns things.\n").hexdigest()[:16],
        "indexed_at": format_at(clock()),
    }
    assert node.head == git("rev-parse", "HEAD", cwd=repo).strip()
    assert of(store, ".lumenflow/constraints.md").tags == ["index:invariants"]
    said = done.as_json()
    assert (said["nodes_created"], said["nodes_updated"], said["nodes_skipped"]) == (2, 0, 0)
    assert said["sources_scanned"] == ["README.md", ".lumenflow/constraints.md"]
    assert "go.mod" in done.sources_missing and not done.problems


def test_seed_names_its_sources_and_tags() -> None:
    tags = {source.path: source.tags for source in sources.default_sources()}

    assert tags["README.md"] == ["index:architecture"]
    assert tags["LUMENFLOW.md"] == ["index:conventions"]
    assert "index:architecture" in tags["package.json"]
    assert {"index:commands", "index:conventions"} == set(tags[".lumenflow.config.yaml"])
    assert tags[".lumenflow/constraints.md"] == ["index:invariants"]


@pytest.mark.usefixtures("commits")
def test_unchanged_source_is_skipped_and_a_changed_one_replaced_and_never_doubled(
    store: Store, repo: Path, clock: Clock
) -> None:
    (repo / "README.md").write_text("# One\n")
    index(store)
    lines = bodies(store)
    clock.forward(MINUTE)
    assert index(store).commit is None
    assert bodies(store) == lines
    for text in ("# Two\n", "# Three\n"):
        (repo / "README.md").write_text(text)
        clock.forward(MINUTE)
        assert index(store).as_json()["nodes_updated"] == 1
        assert index(store).as_json()["nodes_skipped"] == 1

    assert store.db().execute("SELECT count(*) FROM node").fetchone() == (1,)
    node = of(store, "README.md")
    assert node.content == "README.md: Three"
    assert node.metadata["indexed_at"] == format_at(clock())


def test_change_beyond_the_beginning_is_a_change(store: Store, repo: Path) -> None:
    (repo / "README.md").write_text("line\n" * 1000)
    index(store)
    (repo / "README.md").write_text("line\n" * 1000 + "end\n")

    assert index(store).as_json()["nodes_updated"] == 1


def test_line_ends_of_a_checkout_are_no_change(store: Store, repo: Path) -> None:
    (repo / "README.md").write_bytes(b"# One\n\ntwo\n")
    index(store)
    (repo / "README.md").write_bytes(b"\xef\xbb\xbf# One\r\n\r\ntwo\r\n")

    assert index(store).as_json()["nodes_skipped"] == 1


@pytest.mark.usefixtures("commits")
def test_two_clones_that_index_the_same_file_make_one_node(
    store: Store, tmp_path: Path, clock: Clock
) -> None:
    other = open_store(new_repo(tmp_path / "other"), clock, mail="other@example.org")
    for clone in (store, other):
        Path(clone.repo.worktree or "", "README.md").write_text("# Gears\n")
        index(clone)
        clock.forward(MINUTE)
    carry(store, other)

    one, two = of(store, "README.md"), of(other, "README.md")
    assert one.as_json() == two.as_json()
    for clone in (store, other):
        assert clone.db().execute("SELECT count(*) FROM node").fetchone() == (1,)
        assert index(clone).commit is None


def test_two_clones_that_index_different_versions_settle_on_what_is_indexed_next(
    store: Store, tmp_path: Path, clock: Clock
) -> None:
    other = open_store(new_repo(tmp_path / "other"), clock, mail="other@example.org")
    for clone, text in ((store, "# Old\n"), (other, "# New\n")):
        Path(clone.repo.worktree or "", "README.md").write_text(text)
        index(clone)
        clock.forward(MINUTE)
    carry(store, other)
    assert of(store, "README.md").as_json() == of(other, "README.md").as_json()

    assert index(other).as_json()["nodes_updated"] == 1
    carry(store, other)
    assert of(store, "README.md").content == of(other, "README.md").content == "README.md: New"


@pytest.mark.usefixtures("commits")
def test_committed_source_is_current_once_it_is_indexed_again(
    store: Store, repo: Path, git: Callable[..., str]
) -> None:
    from gitmem.memory import anchors

    (repo / "README.md").write_text("# One\n")
    git("add", "README.md", cwd=repo)
    git("commit", "--quiet", "-m", "One", cwd=repo)
    index(store)
    (repo / "README.md").write_text("# Two\n")
    index(store)  # before it is committed
    git("commit", "--quiet", "-am", "Two", cwd=repo)
    assert anchors.stale(store, [of(store, "README.md")])

    index(store)

    assert not anchors.stale(store, [of(store, "README.md")])
    assert index(store).commit is None


@pytest.mark.usefixtures("commits")
def test_node_of_a_source_that_is_gone_stays_and_is_triaged(
    store: Store, repo: Path, git: Callable[..., str]
) -> None:
    (repo / "README.md").write_text("# One\n")
    git("add", ".", cwd=repo)
    git("commit", "--quiet", "-m", "Read me", cwd=repo)
    index(store)
    git("rm", "--quiet", "README.md", cwd=repo)
    git("commit", "--quiet", "-m", "Read nothing", cwd=repo)

    done = index(store)

    assert "README.md" in done.sources_missing and done.commit is None
    node = of(store, "README.md")
    assert node.status == "active"
    assert triage.listing(store).next == [
        f"gitmem show {node.id}", f"gitmem mem update {node.id} --status archived",
    ]  # fmt: skip


@pytest.mark.usefixtures("commits")
@pytest.mark.parametrize("field", ["archived", "deleted"])
def test_node_that_was_put_away_by_hand_stays_away(store: Store, repo: Path, field: str) -> None:
    (repo / "README.md").write_text("# One\n")
    index(store)
    edit.change(store, me(store), [sources.node_id("README.md")], **{field: True})  # type: ignore[arg-type]
    (repo / "README.md").write_text("# Two\n")

    done = index(store)

    assert of(store, "README.md").status == field
    assert (done.entries[0].what, done.commit) == ("put away", None)


@pytest.mark.usefixtures("commits")
def test_own_tags_of_a_node_survive(store: Store, repo: Path) -> None:
    (repo / "README.md").write_text("# One\n")
    index(store)
    id = sources.node_id("README.md")
    edit.change(store, me(store), [id], tags=["mine", "index:architecture"])
    assert index(store).commit is None

    index(store, "README.md=invariants")

    assert of(store, "README.md").tags == ["mine", "index:invariants"]


def test_a_missing_source_is_told_and_the_others_count(store: Store, repo: Path) -> None:
    (repo / "RULES.md").write_text("# Rules\n")

    done = index(store, "RULES.md=index:conventions+commands", "OPS.md=index:commands")

    assert of(store, "RULES.md").tags == ["index:conventions", "index:commands"]
    assert done.problems == ["OPS.md was skipped: it does not exist."]


@pytest.mark.parametrize(
    "text", ["", "RULES.md", "=index:commands", "RULES.md=", "../up.md=commands", "/etc/passwd=commands"]
)
def test_bad_source_of_the_caller_is_refused(store: Store, repo: Path, text: str) -> None:
    (repo / "README.md").write_text("# One\n")
    lines = bodies(store)

    with pytest.raises(UsageError):
        index(store, text)

    assert bodies(store) == lines


def test_dry_run_writes_nothing(store: Store, repo: Path) -> None:
    (repo / "README.md").write_text("# One\n")
    (repo / "RULES.md").write_text("# Rules\n")
    lines = bodies(store)

    done = index(store, "RULES.md=conventions", dry_run=True)

    assert bodies(store) == lines
    assert done.as_json()["nodes_created"] == 2 and done.as_json()["dry_run"] is True
    assert done.next == ["gitmem mem index --source RULES.md=index:conventions"]


def test_bare_repository_has_nothing_to_index(tmp_path: Path, clock: Clock) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "bare.git")], check=True)
    store = open_store(tmp_path / "bare.git", clock)

    with pytest.raises(UsageError, match="bare"):
        index(store)


def _outside(repo: Path) -> None:
    (repo.parent / "outside.md").write_text("Not of this repository.\n")
    (repo / "RULES.md").symlink_to(repo.parent / "outside.md")


def _through_a_folder(repo: Path) -> None:
    (repo.parent / "elsewhere").mkdir()
    (repo.parent / "elsewhere" / "RULES.md").write_text("Not of this repository.\n")
    (repo / "docs").symlink_to(repo.parent / "elsewhere")


BAD: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a link out": (_outside, "RULES.md", "outside of the worktree"),
    "a linked folder": (_through_a_folder, "docs/RULES.md", "outside of the worktree"),
    "a link to git": (lambda repo: (repo / "RULES.md").symlink_to(".git/config"), "RULES.md", "belongs to git"),
    "git's own": (lambda repo: None, ".git/config", "belongs to git"),
    "a link to nothing": (lambda repo: (repo / "RULES.md").symlink_to("gone"), "RULES.md", "cannot be read"),
    "a folder": (lambda repo: (repo / "RULES.md").mkdir(), "RULES.md", ""),
    "binary": (lambda repo: (repo / "RULES.md").write_bytes(b"a\0b"), "RULES.md", "binary"),
    "not UTF-8": (lambda repo: (repo / "RULES.md").write_bytes(b"caf\xe9"), "RULES.md", "not UTF-8 (byte 3)"),
    "large": (lambda repo: (repo / "RULES.md").write_bytes(b"a\n" * 600_000), "RULES.md", "1 MiB"),
    "empty": (lambda repo: (repo / "RULES.md").write_text(" \n"), "RULES.md", "empty"),
    "a secret": (
        lambda repo: (repo / "RULES.md").write_text("token ghp_" + "a1B2" * 10), "RULES.md", "GitHub token"
    ),
}  # fmt: skip
if hasattr(os, "mkfifo"):
    BAD["a pipe"] = (lambda repo: os.mkfifo(repo / "RULES.md"), "RULES.md", "not a file")


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_source_is_told_of_and_the_others_go_on(store: Store, repo: Path, name: str) -> None:
    make, path, said = BAD[name]
    make(repo)
    (repo / "README.md").write_text("# One\n")

    done = index(store, f"{path}=conventions")

    assert len(done.problems) == 1
    assert done.problems[0].startswith(f"{path} was skipped: ") and said in done.problems[0]
    assert done.as_json()["nodes_created"] == 1
    assert of(store, "README.md").content == "README.md: One"
    assert path not in done.sources_scanned


@pytest.mark.usefixtures("commits")
def test_node_of_a_source_that_went_bad_stays_as_it_was(store: Store, repo: Path) -> None:
    (repo / "README.md").write_text("# One\n")
    index(store)
    (repo / "README.md").write_text("token ghp_" + "a1B2" * 10)

    done = index(store)

    assert len(done.problems) == 1 and done.commit is None
    assert of(store, "README.md").content == "README.md: One"


def test_file_with_two_names_is_indexed_once(store: Store, repo: Path) -> None:
    (repo / "AGENTS.md").write_text("# Rules\n")
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")

    done = index(store)

    assert [entry.path for entry in done.entries] == ["AGENTS.md"]
    assert done.warnings == ["CLAUDE.md is the same file as AGENTS.md."]


@given(lines=st.lists(st.text(st.characters(exclude_characters="\n")), min_size=1, max_size=80))
def test_beginning_is_whole_lines_and_never_too_long(lines: list[str]) -> None:
    text = sources.beginning("README.md", "x" + "\n".join(line * 40 for line in lines))

    assert len(text) <= sources.CONTENT_MAX


def test_beginning_that_fits_exactly_is_whole() -> None:
    room = sources.CONTENT_MAX - len("a: x\n")
    assert sources.beginning("a", "x\n" + "y" * room) == "a: x\n" + "y" * room
    assert sources.beginning("a", "x\n" + "y" * (room + 1)) == "a: x\n…"
    assert sources.beginning("a", "x\n" + "y" * (room - 1) + "\nz") == "a: x\n…"  # the mark needs its place
    assert len(sources.beginning("a", "x" * 5000)) == sources.CONTENT_MAX
