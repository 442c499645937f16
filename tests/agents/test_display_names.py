"""The pool: which name a new session gets, and how names enter and leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.agents import display_names, lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.agents.lifecycle import SessionStarted
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.store import Store
from gitmem.text import name_matching
from tests.hazards.test_trust_names import PLAIN, RESERVED

from ..each import each as one_test_for
from ..sandbox import HOUR, Clock, acting, annas, carry, new_repo, open_store, person


@pytest.fixture(autouse=True)
def _in_order(request: pytest.FixtureRequest) -> None:
    """The pool from its beginning, but where the place to begin is the point."""
    if "never_met" not in request.node.name:
        request.getfixturevalue("pool_in_order")


def small_pool(monkeypatch: pytest.MonkeyPatch, *pool: str) -> None:
    monkeypatch.setattr(display_names, "POOL", pool)


def start(store: Store) -> SessionStarted:
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


def test_no_name_is_given_out_within_two_edits_of_one_in_use(repo: Path) -> None:
    """Of names that somebody asked for, too; afterwards it is given out."""
    store = open_store(repo, Clock())
    first = display_names.pick(store)
    odd = lifecycle.start(store, CallerClaims(), name=first + "x")
    second = start(store).display_name
    lifecycle.end(store, acting(store, odd))

    assert second != first
    assert start(store).display_name == first


def test_an_added_name_is_kept_from_those_in_use(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An added name may be near to one of the pool."""
    small_pool(monkeypatch, "Curie", "Planck")
    store = open_store(repo, Clock())
    display_names.add(store, person(store), ["Plank"])

    assert [start(store).display_name for _ in range(3)] == ["Curie", "Planck", "Curie-2"]


def test_a_name_that_is_asked_for_is_given_as_asked(repo: Path) -> None:
    """`dev-2` beside `dev-1`: only the pool keeps a distance."""
    store = open_store(repo, Clock())

    assert [lifecycle.start(store, CallerClaims(), name=each).display_name for each in ("dev-1", "dev-2", "dev")] == [
        "dev-1", "dev-2", "dev",
    ]  # fmt: skip


@pytest.mark.usefixtures("commits")
def test_names_enter_and_leave_the_pool(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is so already is not recorded again."""
    small_pool(monkeypatch, "Curie", "Planck")
    store = open_store(repo, Clock())
    assert display_names.add(store, person(store), ["Hopper", "curie"]).as_json() == {
        "event": "add", "names": ["Hopper"], "unchanged": ["curie"], "commit": store.git.tip("refs/gitmem/log"),
        "recorded": True, "next": ["gitmem name", "gitmem session start"],
    }  # fmt: skip
    assert display_names.remove(store, person(store), ["CURIE", "Nobody"]).unchanged == ["Nobody"]
    assert [(each.name, each.origin) for each in display_names.listing(store).names] == [
        ("Planck", "shipped"),
        ("Hopper", "added"),
    ]
    assert display_names.add(store, person(store), ["Curie"]).names == ["Curie"]
    assert [each.name for each in display_names.listing(store).names] == ["Curie", "Planck", "Hopper"]


def test_the_list_says_who_holds_a_name(repo: Path) -> None:
    """The free ones stand before the used."""
    clock = Clock()
    store = open_store(repo, clock)
    one = start(store)
    clock.forward(HOUR)
    found = display_names.listing(store).names

    assert (found[-1].name, found[-1].held_by, found[0].held_by) == (one.display_name, one.session_id, None)


def test_clones_that_never_met_begin_with_different_names(repo: Path, tmp_path: Path) -> None:
    """Or the second to sync would be renamed at once."""
    stores = [open_store(repo, Clock()), open_store(new_repo(tmp_path / "other"), Clock())]
    for number, store in enumerate(stores):
        store.log.clone_id = lambda number=number: f"clone{number}"  # type: ignore[method-assign,misc]

    assert display_names.pick(stores[0]) != display_names.pick(stores[1])


def test_an_empty_pool_still_gives_names(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody removed them all."""
    small_pool(monkeypatch, "Curie")
    store = open_store(repo, Clock())
    display_names.remove(store, person(store), ["Curie"])

    assert start(store).display_name == "Curie"


@pytest.mark.usefixtures("commits")
def test_what_nobody_may_be_called_does_not_enter(repo: Path) -> None:
    """Nothing is written."""
    store = open_store(repo, Clock())
    for name in ["", "a,b", "Pl\u0430nck", "sess-123456", "a\u2028b", "all", "x@y", "Cu\ufe0frie"]:
        with pytest.raises(UsageError):
            display_names.add(store, person(store), ["Fine", name])
        assert store.git.tip("refs/gitmem/log") is None


@pytest.mark.parametrize(
    "name",
    ["all", annas("human:bob@example.org"), "Hop\ufe0fper", "h-" + "a" * 26, "sess-123456", "--as", "*"],
)
def test_a_bad_name_that_a_peer_put_into_the_pool_is_given_to_nobody(
    repo: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It is listed, and can be taken out."""
    small_pool(monkeypatch, "Curie")
    store = open_store(repo, Clock())
    store.record(
        [store.line("name", {"name": name, "event": "add"})], CommitMessage("M <m@m>", "A name", "", [])
    )

    assert [(each.name, each.origin) for each in display_names.listing(store).names] == [
        ("Curie", "shipped"),
        (name, "refused"),
    ]
    assert [start(store).display_name for _ in range(3)] == ["Curie", "Curie-2", "Curie-3"]
    assert display_names.remove(store, person(store), [name]).names == [name]


def test_two_clones_agree_on_the_pool(tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later of two records about one name counts, wherever it was written."""
    small_pool(monkeypatch, "Curie")
    clock = Clock()
    here, there = open_store(repo, clock), open_store(new_repo(tmp_path / "other"), clock)
    display_names.add(here, person(here), ["Hopper"])
    clock.forward(HOUR)
    display_names.add(there, person(there), ["hopper"])
    clock.forward(HOUR)
    display_names.remove(here, person(here), ["Hopper"])
    carry(here, there)

    assert [each.name for each in display_names.listing(here).names] == ["Curie"]
    assert [each.name for each in display_names.listing(there).names] == ["Curie"]


@one_test_for(PLAIN)
def test_a_name_that_only_begins_like_a_reserved_one_is_allowed(name: str) -> None:
    display_names.check(name)
    assert not name_matching.is_reserved(name)


@one_test_for(RESERVED)
def test_what_reads_like_an_address_is_no_name(name: str) -> None:
    assert name_matching.is_reserved(name)
    with pytest.raises(UsageError):
        display_names.check(name)
