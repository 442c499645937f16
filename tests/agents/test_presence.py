"""Names and sessions are a fold of lines: the same on every clone, in whatever order the lines arrived."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitmem import records, views
from gitmem.agents import presence
from gitmem.index import index_file, insert
from gitmem.index.index_file import Index
from gitmem.text.name_matching import fold, mixes_scripts, strip_numbers

START = 1_793_000_000_000_000
HOUR = 3_600_000_000
IDS = tuple(f"sess-00000{letter}" for letter in "abcdef")
NAMES = ("dev", "Dev", "dev-2", "dev_2", "dev-2-2", "Planck")


def session(id: str, at: int, event: str, name: str, **fields: str) -> bytes:
    values = {"session_id": id, "event": event, "display_name": name, "clone_id": "c", **fields}
    return records.line("session", START + at, values)


def signal(id: str, at: int, number: int) -> bytes:
    fields: dict[str, object] = {
        "schema_version": "A2A.V1", "signal_id": f"sig-{number:04}", "sender_identity": id, "sender_session": id,
        "recipients": [], "message": "hello",
    }  # fmt: skip
    return records.line("signal", START + at, fields)


def index_of(*batches: list[bytes]) -> Index:
    """An index that these lines arrived in, batch by batch."""
    index = index_file.in_memory(views.VIEWS, records.read)
    index.reshape()
    for batch in batches:
        insert.lines(index, 1, batch)
    return index


def tables(index: Index) -> list[list[tuple[object, ...]]]:
    """What the view says, without the row ids that tell the order of arrival."""
    return [
        index.db.execute(query).fetchall()
        for query in (
            "SELECT * FROM session ORDER BY session_id",
            "SELECT * FROM alive ORDER BY session_id, begin",
            "SELECT t.session_id, l.body, t.claimed, t.until, t.name, t.fold, t.root, t.shown, t.shown_fold, t.last"
            " FROM tenure t JOIN line l ON l.id = t.line ORDER BY t.session_id, t.claimed, l.body",
            "SELECT * FROM pool_name ORDER BY fold",
        )
    ]


def shown(index: Index) -> dict[str, str]:
    rows = index.db.execute("SELECT session_id, shown FROM tenure WHERE last")
    return dict(rows.fetchall())


def plainly_shown(index: Index) -> list[tuple[object, ...]]:
    """The rule, over all tenures at once: in the order of claims each takes the first name that is free."""
    tenures = index.db.execute(
        "SELECT t.claimed, l.body, t.until, t.name, t.session_id FROM tenure t JOIN line l ON l.id = t.line"
        " ORDER BY t.claimed, l.body"
    ).fetchall()
    done: list[tuple[int, str]] = []
    found = []
    for claimed, _, until, name, session_id in tenures:
        taken = {folded for end, folded in done if end > claimed}
        options = [name, *(f"{name}-{number}" for number in range(2, 99))]
        free = next(option for option in options if fold(option) not in taken)
        done.append((until, fold(free)))
        found.append((session_id, claimed, free))
    return sorted(found)


moments = st.integers(0, 12).map(lambda step: step * 20 * HOUR)
lines = st.lists(
    st.one_of(
        st.builds(
            session,
            st.sampled_from(IDS),
            moments,
            st.sampled_from(("start", "change", "end")),
            st.sampled_from(NAMES),
        ),
        st.builds(signal, st.sampled_from(IDS), moments, st.integers(0, 30)),
    ),
    unique=True,
    max_size=25,
)


@given(lines, st.randoms(use_true_random=False), st.integers(1, 8))
def test_the_order_of_arrival_changes_nothing(found: list[bytes], random: object, size: int) -> None:
    """Shuffled and cut into batches, the same lines give the same tables."""
    at_once = index_of(found)
    mixed = list(found)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    later = index_of(*(mixed[at : at + size] for at in range(0, len(mixed), size)))

    assert tables(at_once) == tables(later)


@given(lines)
def test_names_that_show_are_those_of_the_plain_rule(found: list[bytes]) -> None:
    """Settling only what can have changed gives what settling everything would."""
    index = index_of(*([line] for line in found))
    rows = index.db.execute("SELECT session_id, claimed, shown FROM tenure").fetchall()

    assert sorted(rows) == plainly_shown(index)


def test_the_first_keeps_the_name_and_the_next_get_numbers() -> None:
    """By the time of the start, however the lines arrive."""
    starts = [session(IDS[number], number, "start", "Planck") for number in range(3)]

    assert shown(index_of(starts[::-1])) == {IDS[0]: "Planck", IDS[1]: "Planck-2", IDS[2]: "Planck-3"}


def test_starts_in_the_same_microsecond_are_ordered_by_their_bytes() -> None:
    """Two clones can have one clock."""
    index = index_of([session(IDS[1], 0, "start", "Planck")], [session(IDS[0], 0, "start", "Planck")])

    assert shown(index) == {IDS[0]: "Planck", IDS[1]: "Planck-2"}


def test_names_that_only_look_different_are_one_name() -> None:
    """Case, `-`, `_`, space and compatibility forms do not count."""
    found = [session(IDS[0], 0, "start", "Big Dev"), session(IDS[1], 1, "start", "\uff42ig_dev")]

    assert shown(index_of(found)) == {IDS[0]: "Big Dev", IDS[1]: "\uff42ig_dev-2"}


def test_a_number_that_somebody_asked_for_is_not_given_to_another() -> None:
    """`dev-2` as asked stays with its holder; the second `dev` becomes `dev-3`."""
    found = [
        session(IDS[0], 0, "start", "dev"), session(IDS[1], 1, "start", "dev-2"), session(IDS[2], 2, "start", "dev")
    ]  # fmt: skip

    assert shown(index_of(found)) == {IDS[0]: "dev", IDS[1]: "dev-2", IDS[2]: "dev-3"}


def test_a_number_that_was_given_is_not_taken_by_who_asks_for_it_later() -> None:
    """Mail for the second `dev` must not go to a third session."""
    found = [
        session(IDS[0], 0, "start", "dev"), session(IDS[1], 1, "start", "dev"), session(IDS[2], 2, "start", "dev-2")
    ]  # fmt: skip

    assert shown(index_of(found)) == {IDS[0]: "dev", IDS[1]: "dev-2", IDS[2]: "dev-2-2"}


def test_a_name_is_free_two_days_after_the_last_record() -> None:
    """A signal is a record, too: it prolongs the hold."""
    start, late = session(IDS[0], 0, "start", "Planck"), session(IDS[1], 50 * HOUR, "start", "Planck")

    assert shown(index_of([start, late]))[IDS[1]] == "Planck"
    assert shown(index_of([start, late], [signal(IDS[0], 3 * HOUR, 1)]))[IDS[1]] == "Planck-2"


def test_who_comes_back_after_it_was_gone_takes_its_name_from_nobody() -> None:
    """Mail for the new holder must not go to the old one."""
    found = [session(IDS[0], 0, "start", "Planck"), session(IDS[1], 50 * HOUR, "start", "Planck")]

    assert shown(index_of(found, [signal(IDS[0], 60 * HOUR, 1)])) == {IDS[0]: "Planck-2", IDS[1]: "Planck"}


def test_the_end_frees_the_name_at_once() -> None:
    """And what is written after it holds nothing."""
    found = [
        session(IDS[0], 0, "start", "Planck"), session(IDS[0], 5, "end", "Planck"), signal(IDS[0], 9, 1),
        session(IDS[1], 10, "start", "Planck"),
    ]  # fmt: skip

    assert shown(index_of(found))[IDS[1]] == "Planck"


def test_of_each_field_the_latest_value_counts() -> None:
    """A change that says nothing of a field leaves it."""
    index = index_of(
        [session(IDS[0], 9, "change", "Planck", wu_id="WU-2")],
        [session(IDS[0], 0, "start", "Planck", wu_id="WU-1", lane="docs")],
    )

    assert index.db.execute("SELECT wu_id, lane, started FROM session").fetchall() == [
        ("WU-2", "docs", START)
    ]


def test_a_time_that_is_none_costs_only_that_line() -> None:
    """The thirtieth of February passes for a time by its form."""
    line = session(IDS[0], 0, "start", "Planck")
    odd = line.replace(line[7:17], b"2026-02-30").replace(IDS[0].encode(), IDS[1].encode())
    index = index_file.in_memory(views.VIEWS, records.read)
    index.reshape()
    insert.lines(index, 1, [odd, line])

    assert shown(index) == {IDS[0]: "Planck"}


def test_scripts_mixed_in_a_word_are_found() -> None:
    """Japanese, which mixes by nature, and accents are not meant."""
    mixed = ("Pl\u0430nck", "\u0420lanck", "\u03b1lpha", "dev\u6771")
    plain = (
        "Planck",
        "\u041f\u043b\u0430\u043d\u043a",
        "M\u00fcller",
        "\u6771\u4eac\u30bf\u30ef\u30fc",
        "dev-2",
        "\uff24\uff25v",
    )

    assert [text for text in (*mixed, *plain) if mixes_scripts(text)] == list(mixed)


def test_the_root_of_a_name_is_without_its_numbers() -> None:
    """And never empty."""
    assert [strip_numbers(name) for name in ("dev-2-3", "dev", "dev2", "-2", "7-2", "dev-")] == [
        "dev", "dev", "dev2", "-2", "7", "dev-",
    ]  # fmt: skip


def test_how_long_ago_reads_as_words() -> None:
    """In the largest unit that has two."""
    hours = (0, 30 / 3600, 1 / 60, 0.1, 1.5, 3, 50)
    assert [presence.format_age(int(each * HOUR)) for each in hours] == [
        "just now", "just now", "a minute ago", "6 minutes ago", "90 minutes ago", "3 hours ago", "2 days ago",
    ]  # fmt: skip
