"""The published suite: who passes it, who fails it and by what, and how it is asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from gitmem.conformance import case_setup, test_signing
from gitmem.conformance.adapter import OPTIONAL
from gitmem.conformance.case_setup import B, C, D
from gitmem.conformance.mutants import MUTANTS, bus_of, read
from gitmem.conformance.reference import Reference

from .suite import catches, run

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")
TWO_PLACES = {
    "decisions_in_two_places_give_one_answer[here]",
    "decisions_in_two_places_give_one_answer[there]",
    "the_same_key_is_the_same_signal_in_two_places",
    "receipts_are_shared_across_places",
    "takes_in_two_places_are_a_conflict_with_one_holder",
    "claims_in_two_places_contest_each_other",
}
PUBLISHED = {case.group for case in case_setup.cases() if case.source == "A2A.V1"}
FUNCTIONS: dict[str, Callable[..., object]] = {
    case.name: vars(import_module(case_setup.GROUPS[case.group][1]))[f"test_{case.name}"]
    for case in case_setup.cases()
}


@pytest.mark.parametrize(
    ("adapter", "group"),
    [
        *(
            pytest.param("gitmem.conformance.reference:Reference", group, id=f"reference-{group}")
            for group in case_setup.GROUPS
        ),
        *(
            pytest.param(
                "gitmem.conformance.library:make",
                group,
                id=f"library-{group}",
                marks=[] if group in ("visibility", "tasks") else [pytest.mark.deep],
            )
            for group in case_setup.GROUPS
        ),
    ],
)
def test_gitmem_keeps_the_contract(adapter: str, group: str, tmp_path: Path) -> None:
    """R36: the reference in memory, and the library, so that launchers anywhere share one schema of roles, tasks and claims."""
    ran = run(adapter, tmp_path, of=[case_setup.GROUPS[group][1]])

    assert ran.status == 0, ran.said()
    assert plain(ran.passed) == {case.name for case in case_setup.cases() if case.group == group}
    assert ran.not_applicable == set()


@pytest.mark.deep
@pytest.mark.parametrize("group", [group for group in case_setup.GROUPS if group in PUBLISHED])
def test_the_program_keeps_what_is_published(group: str, tmp_path: Path) -> None:
    """By what `--json` prints. The other cases, as slow and of the same operations, are run by hand."""
    of_group = [case for case in case_setup.cases() if case.group == group]

    ran = run(
        "tests.conformance.suite:make_in_process",
        tmp_path,
        "-m",
        "not decided",
        of=[case_setup.GROUPS[group][1]],
    )

    assert ran.status == 0, ran.said()
    assert plain(ran.passed) | ran.not_applicable == {
        case.name for case in of_group if case.source == "A2A.V1"
    }
    assert ran.not_applicable == set()


def plain(names: set[str]) -> set[str]:
    """Cases without what they were given."""
    return {name.partition("[")[0] for name in names}


@pytest.mark.parametrize("group", case_setup.GROUPS)
def test_every_mutant_is_caught_by_its_case(group: str, tmp_path: Path) -> None:
    """A suite that lets a bus break a sentence of the contract would be believed by its author."""
    of_group = {case.name for case in case_setup.cases() if case.group == group}
    some = [each for each in MUTANTS.values() if each.case in of_group]

    caught = [each.name for each in some if catches(FUNCTIONS[each.case], bus_of(each), tmp_path)]

    assert caught == [each.name for each in some]


def test_every_case_has_a_mutant_that_it_catches() -> None:
    """So each sentence is tested; and no mutant names a case that is gone."""
    names = [case.name for case in case_setup.cases()]

    assert {each.case for each in MUTANTS.values()} == {*names}
    assert len({*names}) == len(names)
    assert len(MUTANTS) >= 82


def test_the_reference_passes_where_mutants_fail(tmp_path: Path) -> None:
    """What calls the cases without pytest calls them with the same values."""
    assert [name for name, case in FUNCTIONS.items() if catches(case, Reference, tmp_path)] == []


def test_a_mutant_is_an_adapter(tmp_path: Path) -> None:
    """As an author of a suite asks for it."""
    ran = run(
        "gitmem.conformance.mutants:ConvergesByMajority", tmp_path, of=[case_setup.GROUPS["convergence"][1]]
    )

    assert ran.status == 1
    assert set(ran.failed) >= {f"most_are_not_all[{who}]" for who in (B, C, D)}


def test_a_mutant_of_another_source_says_so() -> None:
    """The reference may change: a mutant that changes nothing would be no mutant, and one with another's name would replace it."""
    lines = ["a_case", "  First", "    - no such text", "    + x", "  Second", "    - each", "    + x"]

    for mutant in read(lines).values():
        with pytest.raises(ValueError, match=f"{mutant.name} takes out what must be in gitmem"):
            bus_of(mutant)
    with pytest.raises(ValueError, match="two mutants with the name First"):
        read([*lines, "  First"])


def test_what_a_bus_says_it_lacks_is_reported_and_nothing_else_is_left_out(tmp_path: Path) -> None:
    """One place only: the cases of two places do not apply, by name; all others hold."""
    ran = run("tests.conformance.suite:HasOnePlace", tmp_path)

    assert ran.status == 0, ran.said()
    assert ran.not_applicable == TWO_PLACES


def test_a_bus_says_what_it_lacks(tmp_path: Path) -> None:
    """A missing method is a failure, not a case less."""
    ran = run(
        "tests.conformance.suite:ForgetsToSayWhatItLacks", tmp_path, of=[case_setup.GROUPS["receipt"][1]]
    )

    assert set(ran.failed) == {"a_watcher_delivers"}


def test_only_what_is_published_can_be_asked_for(tmp_path: Path) -> None:
    """What gitmem decided where A2A.V1 is silent can be left out, and the report counts it as deselected."""
    published = {case.name for case in case_setup.cases() if case.source == "A2A.V1"}

    ran = run("gitmem.conformance.reference:Reference", tmp_path, "-m", "not decided")

    assert plain(ran.passed) == published


def _pytest(cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """As whoever has gitmem installed; `-p` stands for its entry point, which a checkout may not have."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "gitmem.conformance.entry",
        "-p",
        "no:cacheprovider",
        *args,
    ]
    return subprocess.run(
        command, cwd=cwd, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip


def test_the_command_of_the_page_reports_what_did_not_apply(tmp_path: Path) -> None:
    """In a process of its own, elsewhere: the last line counts it, and a section names it with the reason."""
    done = _pytest(
        tmp_path, "--pyargs", "gitmem.conformance", "--adapter", "tests.conformance.suite:HasOnePlace"
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed, 6 not applicable in", done.stdout.splitlines()[-1])
    assert "the_same_key_is_the_same_signal_in_two_places: the adapter has no second" in done.stdout
    assert "one place for everybody" in done.stdout


@pytest.mark.parametrize(
    ("adapter", "words"),
    [
        ([], "--adapter MODULE:FACTORY names a function"),
        (["--adapter", "nowhere"], "--adapter MODULE:FACTORY names a function"),
        (
            ["--adapter", "no_such_module:make"],
            "Cannot import --adapter no_such_module:make: No module named 'no_such_module'",
        ),
        (["--adapter", "gitmem.conformance.reference:nothing"], "Cannot import --adapter"),
        (["--adapter", "gitmem.conformance.mutants:Nothing"], "Unknown mutant: Nothing"),
    ],
    ids=["missing", "no function", "no module", "no such function", "no such mutant"],
)
def test_without_an_adapter_the_error_is_a_sentence(tmp_path: Path, adapter: list[str], words: str) -> None:
    """And no traceback."""
    done = _pytest(tmp_path, "--pyargs", "gitmem.conformance", *adapter)

    assert done.returncode == 4
    assert words in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_other_projects_do_not_see_the_options(tmp_path: Path) -> None:
    """Every pytest beside an installed gitmem loads the entry: `--adapter` may be another plugin's there."""
    done = _pytest(tmp_path, "--help")

    assert done.returncode == 0
    assert "--adapter" not in done.stdout


def test_the_page_has_every_sentence_of_the_contract(tmp_path: Path) -> None:
    """As `--contract` prints them."""
    done = _pytest(tmp_path, "--pyargs", "gitmem.conformance", "--contract")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "\n".join(case_setup.lines()).strip()
    assert "\n".join(case_setup.lines()).strip() in PAGE


def test_the_page_has_the_worked_example() -> None:
    """The literal values that the cases check."""
    values = (
        test_signing.KEY,
        test_signing.WRITER,
        test_signing.LINE,
        test_signing.HASH,
        test_signing.ATTESTATION,
    )

    assert [value for value in values if value not in PAGE] == []
    assert "(conformance.md#signed-lines)" in (ROOT / "docs/format.md").read_text(encoding="utf-8")


def test_the_page_names_what_an_adapter_has_and_may_lack() -> None:
    """Each method of the protocol."""
    from gitmem.conformance.adapter import FullBus

    methods = {name for name in dir(FullBus) if not name.startswith("_")}

    assert {name for name in methods if f"`{name}" not in PAGE} == set()
    assert set(OPTIONAL) <= methods
