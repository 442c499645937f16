"""The published suite: who passes it, who fails it and by what, and how it is asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gitmem.conformance import case_setup, test_signing
from gitmem.conformance.adapter import OPTIONAL

from .suite import run

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")
WATCH = {"a_watcher_delivers"}
TWO_PLACES = {
    "decisions_in_two_places_give_one_answer[here]",
    "decisions_in_two_places_give_one_answer[there]",
    "the_same_key_is_the_same_signal_in_two_places",
    "receipts_are_shared_across_places",
    "takes_in_two_places_are_a_conflict_with_one_holder",
    "claims_in_two_places_contest_each_other",
}
PUBLISHED = {case.group for case in case_setup.cases() if case.source == "A2A.V1"}
# Class of `wrong` → the cases that have to catch it.
CAUGHT = {
    "ShowsBroadcastsToTheirSender": {"a_broadcast_does_not_show_to_its_sender"},
    "ShowsEverythingToEverybody": {"a_directed_signal_shows_to_its_recipient_alone", "one_signal_has_several_recipients"},
    "SharesReadStateWithoutIdentity": {"sessions_without_identity_have_receipts_of_their_own"},
    "KeepsReadStateBySession": {"sessions_with_one_identity_share_what_was_read"},
    "MarksWhatWasOnlyLookedAt": {"showing_without_marking_leaves_it_unread", "showing_without_marking_leaves_no_receipt"},
    "CountsCounterAsAgree": {"recipients_are_listed_by_decision[COUNTER-countered]"},
    "WaitsForNobody": {"all_agree", "recipients_are_listed_by_decision[None-pending]"},
    "TakesTheLatestByItsClock": {"clocks_do_not_decide_which_decision_is_later", "the_order_of_arrival_changes_nothing"},
    "TakesTheLatestByItsArrival": {"the_order_of_arrival_changes_nothing"},
    "TakesTheFirstDecision": {"the_latest_decision_counts[REJECT-AGREE]", "the_later_decision_counts[REJECT-AGREE-acked]"},
    "ClaimsThatCountersAgreeToTheRoot": {"a_counter_is_a_proposal_that_others_accept", "a_proposal_that_was_replaced_is_not_agreed"},
    "LetsAnybodyPropose": {"a_counter_of_somebody_who_was_not_asked_changes_nothing"},
    "LooksPastProposalsOfOthers": {"an_agreement_to_a_proposal_of_somebody_who_was_not_asked_is_none"},
    "DoesNotAskWhoProposed": {"the_first_proposer_may_refuse_a_counter"},
    "AsksAllWhateverTheRootSays": {"as_many_as_the_root_says_are_enough", "a_counter_is_decided_as_the_root_says"},
    "KnowsNoVeto": {f"who_may_veto_has_to_agree[{said}]" for said in (None, "REJECT", "COUNTER")},
    "LetsARejectStopAQuorum": {"as_many_as_the_root_says_are_enough"},
    "LetsAMajorityOverruleTheProposer": {"a_counter_is_decided_as_the_root_says"},
    "TakesAnyQuorum": {"only_a_proposal_that_begins_a_thread_has_a_quorum"},
    "PromotesForAnybody": {"a_decision_of_others_promotes_nothing"},
    "AcceptsUnknownRecipients": {"an_identity_that_was_never_seen_is_refused"},
    "SendsToThoseItKnows": {"one_unknown_recipient_refuses_all_of_a_list"},
    "ForgetsTheThreadInReplies": {"a_reply_inherits_the_thread", "all_agree"},
    "IgnoresIdempotencyKeys": {"the_same_key_is_the_same_signal", "the_same_key_is_the_same_signal_in_two_places"},
    "TakesAnyIntent": {"an_unknown_intent_is_refused"},
    "DoesNotKnowTheOldAlias": {"the_old_alias_alone_routes_a_record"},
    "TrustsSwappedText": {"an_ambiguous_signal_has_no_agreement"},
    "TrustsAnswersToOtherText": {"a_decision_on_other_content_does_not_count", "a_local_decision_without_digest_does_not_count"},
    "KnowsTheProposerByItsSessionAlone": {"another_session_of_a_proposer_cannot_agree_in_anothers_name"},
    "LetsWhoRecordedAProposalAgree": {f"a_proposer_in_anothers_name_cannot_agree[{who}]" for who in ("cursor:editor:four", "human:person@example.org")},
    "GivesTheNewestPlaceItsWay": {"decisions_in_two_places_give_one_answer[here]"},
    "ForgetsTheRoleOfTheSender": {"the_role_of_a_sender_is_the_one_that_it_states", "a_signal_of_another_program_keeps_its_fields"},
    "GuessesRoles": {"a_role_that_nobody_holds_is_refused"},
    "DoesNotKnowAliases": {"an_alias_stands_for_its_role[code-reviewer]", "an_alias_stands_for_its_role[bug-triage]"},
    "TakesTheRoleFromTheIdentity": {"a_signal_has_no_role_that_its_sender_does_not_state", "the_role_of_a_sender_is_the_one_that_it_states", "a_signal_to_a_role_reaches_all_who_hold_it"},
    "ForgetsTheRoleThatIsMeant": {"roles_and_delegation_travel_with_a_signal"},
    "ForgetsTheDelegation": {"roles_and_delegation_travel_with_a_signal"},
    "ForgetsTheWorkspace": {"a_signal_has_the_workspace_of_its_sender", "a_signal_of_another_program_keeps_its_fields"},
    "ForgetsWhenItWasRead": {"a_receipt_has_the_time_of_reading"},
    "ReadsEverythingIn1970": {"a_receipt_has_the_time_of_reading"},
    "ReadsWhenItIsAsked": {"a_receipt_has_the_time_of_reading", "a_receipt_keeps_its_time"},
    "ForgetsTheKeyOfAReceipt": {"a_receipt_of_another_program_keeps_its_fields"},
    "ForgetsToSayWhatItLacks": WATCH,
    "ForgetsTheScopeThatIsRequested": {"a_delegation_has_a_role_and_a_scope"},
    "FlattensMismatches": {"the_role_of_a_holder_stays_beside_the_requested_one"},
    "DelegatesWithoutRole": {"a_delegation_without_role_or_scope_requests_them[role]", "a_delegation_without_role_or_scope_requests_them[paths]"},
    "TellsNobodyOfADelegation": {"a_delegation_reaches_its_addressee"},
    "LetsEverybodyTake": {"a_task_is_for_its_addressee", "whoever_takes_a_task_first_has_it"},
    "ConfirmsWhatItIsTold": {"an_end_is_confirmed_by_whoever_asked"},
    "HidesConflicts": {"takes_in_two_places_are_a_conflict_with_one_holder"},
    "HandsOverAtOnce": {"a_task_that_is_handed_over_changes_hands_when_it_is_accepted"},
    "ClaimsFilesAlone": {"a_claimed_path_is_refused[src]", "a_claimed_path_is_refused[src/*.py]", "a_claimed_path_is_refused[docs/guide.md]"},
    "ClaimsAgainstItself": {"claims_of_one_agent_do_not_contest"},
    "KeepsReleasedClaims": {"a_claim_stands_until_it_is_released"},
    "CountsWhatNobodySigned": {"a_line_counts_when_its_writer_has_signed_it", "a_reduced_form_alone_does_not_count"},
    "BelievesAnySigner": {"nobody_signs_for_another_writer"},
    "CountsWhatNobodyBroughtIn": {"a_line_without_a_writer_counts_when_anybody_has_signed_it"},
    "LetsHistoryNameAnybody": {
        f"a_line_without_a_writer_names_nothing_of_one[{name}]" for name in ("reply_to", "thread_id", "named thread", "recipients", "signal_id")
    },
    "VerifiesTheSignatureAlone": {
        f"an_attestation_in_another_form_is_none[{how}]"
        for how in ("the key of another writer", "hashes that descend", "the number 2 without before", "another order", "spaces")
    },
    "JudgesOnArrivalAlone": {"the_order_of_arrival_decides_nothing[(0, 2, 1, 3)]", "what_is_forgotten_is_so_in_any_order"},
    "TakesAnyId": {"an_id_belongs_to_its_writer[signal_id-sig]", "an_id_belongs_to_its_writer[via-sess]"},
    "TakesAnyAddress": {"an_address_belongs_to_its_writer[human:anna@example.org]"},
    "GrantsEverything": {"a_grant_is_for_its_words"},
    "LetsAnybodyForget": {"a_line_is_forgotten_by_its_writer_alone"},
    "NeverForgets": {"a_forgotten_line_has_its_reduced_form"},
    "LetsTheFirstClaimWin": {"claims_in_two_places_contest_each_other"},
}  # fmt: skip


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


@pytest.mark.parametrize("wrong", CAUGHT)
def test_a_bus_that_breaks_the_contract_is_caught(wrong: str, tmp_path: Path) -> None:
    """By the cases that are about what it breaks."""
    names = plain(CAUGHT[wrong])
    about = [case for case in case_setup.cases() if case.name in names]

    ran = run(
        f"tests.conformance.wrong:{wrong}",
        tmp_path,
        of=[f"{case_setup.GROUPS[case.group][1]}::test_{case.name}" for case in about],
    )

    assert ran.status == 1
    assert set(ran.failed) >= CAUGHT[wrong]


def test_what_a_bus_says_it_lacks_is_reported_and_nothing_else_is_left_out(tmp_path: Path) -> None:
    """One place only: the cases of two places do not apply, by name; all others hold."""
    ran = run("tests.conformance.wrong:HasOnePlace", tmp_path)

    assert ran.status == 0, ran.said()
    assert ran.not_applicable == TWO_PLACES


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
        tmp_path, "--pyargs", "gitmem.conformance", "--adapter", "tests.conformance.wrong:HasOnePlace"
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
    ],
    ids=["missing", "no function", "no module", "no such function"],
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
