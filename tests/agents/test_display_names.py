"""The pool: which name a new session gets, and how names enter and leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.agents import lifecycle, names
from gitmem.agents.caller import CallerClaims
from gitmem.agents.lifecycle import SessionResult
from gitmem.errors import UsageError
from gitmem.store import Store
from gitmem.text import name_matching
from tests.hazards.test_trust_names import PLAIN, RESERVED

from ..each import each as one_test_for
from ..sandbox import HOUR, Clock, acting, new_repo, open_store


@pytest.fixture(autouse=True)
def _in_order(request: pytest.FixtureRequest) -> None:
    """The pool from its beginning, but where the place to begin is the point."""
    if "never_met" not in request.node.name:
        request.getfixturevalue("pool_in_order")


def small_pool(monkeypatch: pytest.MonkeyPatch, *pool: str) -> None:
    monkeypatch.setattr(names, "POOL", pool)


def start(store: Store) -> SessionResult:
    return lifecycle.start(store, CallerClaims())


def test_the_least_recently_used_name_is_next(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First those that were never used, in the pool's order; then the one whose holder ended first."""
    small_pool(monkeypatch, "Curie", "Planck", "Noether")
    clock = Clock()
    store = open_store(repo, clock)
    given = [start(store) for _ in range(3)]
    for each in (given[1], given[2], given[0]):
        clock.forward(HOUR)
        lifecycle.end(store, acting(store, each))

    assert [each.display_name for each in given] == ["Curie", "Planck", "Noether"]
    assert [start(store).display_name for _ in range(3)] == ["Planck", "Noether", "Curie"]


def test_an_exhausted_pool_gives_numbers(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`<Name>-2` for each name, then `-3`."""
    small_pool(monkeypatch, "Curie", "Planck")
    store = open_store(repo, Clock())

    assert [start(store).display_name for _ in range(5)] == [
        "Curie",
        "Planck",
        "Curie-2",
        "Planck-2",
        "Curie-3",
    ]


def test_a_name_that_is_asked_for_is_given_as_asked(repo: Path) -> None:
    """`dev-2` beside `dev-1`."""
    store = open_store(repo, Clock())

    assert [lifecycle.start(store, CallerClaims(), name=each).display_name for each in ("dev-1", "dev-2", "dev")] == [
        "dev-1", "dev-2", "dev",
    ]  # fmt: skip


def test_the_file_of_the_project_has_the_names(repo: Path) -> None:
    """One a line, as people edit it; what nobody may be called is given to nobody."""
    (repo / ".gitmem").mkdir()
    (repo / ".gitmem" / "names").write_text("Hopper\r\n\n  Kahlo \nall\na,b\nPl\u0430nck\nKahla\n")
    store = open_store(repo, Clock())

    assert [start(store).display_name for _ in range(4)] == ["Hopper", "Kahlo", "Kahla", "Hopper-2"]


@pytest.mark.parametrize("content", [b"", b"all\n", b"\0Curie\n", b"\xff\n", b"Curie\n" * 20_000])
def test_a_file_without_a_name_leaves_those_that_ship(
    repo: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """A file in another encoding, or of more than 64 KiB, counts as missing."""
    small_pool(monkeypatch, "Noether")
    (repo / ".gitmem").mkdir()
    (repo / ".gitmem" / "names").write_bytes(content)

    assert start(open_store(repo, Clock())).display_name == "Noether"


def test_clones_that_never_met_begin_with_different_names(repo: Path, tmp_path: Path) -> None:
    """Or the second to sync would be renamed at once."""
    stores = [open_store(repo, Clock()), open_store(new_repo(tmp_path / "other"), Clock())]
    for number, store in enumerate(stores):
        store.log.clone_id = lambda number=number: f"clone{number}"  # type: ignore[method-assign,misc]

    assert names.pick(stores[0]) != names.pick(stores[1])


@one_test_for(PLAIN)
def test_a_name_that_only_begins_like_a_reserved_one_is_allowed(name: str) -> None:
    names.check(name)
    assert not name_matching.is_reserved(name)


@one_test_for(RESERVED)
def test_what_reads_like_an_address_is_no_name(name: str) -> None:
    assert name_matching.is_reserved(name)
    with pytest.raises(UsageError):
        names.check(name)
