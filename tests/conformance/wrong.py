"""Buses that keep all of the contract but one thing. Each has to fail the suite."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from gitmem.conformance.adapter import Claim, Convergence, Descriptor, Options, Receipt, Refused, Signal, Task
from gitmem.conformance.reference import Agreement, Reference, age
from gitmem.conformance.reference_lines import unurl64
from gitmem.conformance.signed_lines import DOMAIN
from gitmem.text import ed25519


class ShowsBroadcastsToTheirSender(Reference):
    def is_for(self, session: str, signal: Signal) -> bool:
        return super().is_for(session, signal) or not signal["recipients"]


class ShowsEverythingToEverybody(Reference):
    def is_for(self, session: str, signal: Signal) -> bool:
        return signal["sender_identity"] != self.reader(session)


class SharesReadStateWithoutIdentity(Reference):
    def has_read(self, readers: Sequence[str], signal_id: str) -> bool:
        if any(each.startswith("sess-") for each in readers):
            readers = [*readers, *self.records.sessions]
        return super().has_read(readers, signal_id)


class KeepsReadStateBySession(Reference):
    def inbox(
        self, session: str, *, mark: bool = True, thread: str | None = None, intents: Sequence[str] = ()
    ) -> list[Signal]:
        own = self.__dict__.setdefault("shown", {}).setdefault(session, set())
        everything = [each for each in self.signals().values() if self.is_for(session, each)]
        super().inbox(session, mark=mark, thread=thread, intents=intents)
        found = [each for each in everything if each["signal_id"] not in own]
        own.update(each["signal_id"] for each in found if mark)
        return found


class MarksWhatWasOnlyLookedAt(Reference):
    def inbox(
        self, session: str, *, mark: bool = True, thread: str | None = None, intents: Sequence[str] = ()
    ) -> list[Signal]:
        return super().inbox(session, thread=thread, intents=intents)


class CountsCounterAsAgree(Reference):
    def converged(self, thread: str) -> Convergence:
        found = super().converged(thread)
        agreed = [*found["agreed"], *found["countered"]]
        return {**found, "agreed": agreed, "countered": [],
                "converged": not (found["rejected"] or found["pending"])}  # fmt: skip


class WaitsForNobody(Reference):
    def converged(self, thread: str) -> Convergence:
        found = super().converged(thread)
        return {**found, "converged": bool(found["agreed"] and not (found["rejected"] or found["countered"]))}


class TakesTheLatestByItsClock(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        return _agreement(signals, lambda own: [max(own, key=age)])


class TakesTheLatestByItsArrival(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        ids = {each["signal_id"]: place for place, each in enumerate(self.records.signals.values())}
        return _agreement(signals, lambda own: [max(own, key=lambda each: ids[each["signal_id"]])])


class TakesTheFirstDecision(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        return _agreement(signals, lambda own: [min(own, key=age)])


class ClaimsThatCountersAgreeToTheRoot(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        plain = {
            id: {**each, "intent": "INFO"} if each["intent"] == "COUNTER" else each
            for id, each in signals.items()
        }
        return super().agreement(plain)  # type: ignore[arg-type]


class LooksPastProposalsOfOthers(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        class Past(Agreement):
            def reached(self, id: str | None) -> str | None:
                while id in self.signals and id not in self.ids:
                    id = self.signals[id].get("reply_to") or self.root["signal_id"]
                return id if id in self.ids else None

        return Past(signals, {})


class LetsAnybodyPropose(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        class Open(Agreement):
            def may_propose(self, signal: Signal) -> bool:
                return True

        return Open(signals, {})


class LooksPastWordsOfOthers(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        class Past(Agreement):
            def reached(self, id: str | None) -> str | None:
                while id in self.signals and id not in self.ids:
                    if self.signals[id]["intent"] in ("PROPOSE", "COUNTER"):
                        return None
                    id = self.signals[id].get("reply_to") or self.root["signal_id"]
                return id if id in self.ids else None

        return Past(signals, {})


class LetsOthersOrderDecisions(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        class Ordered(Agreement):
            def last_of(self, reader: str, signals: Iterable[Signal]) -> list[Signal]:
                return self.last(signals, self.signals.values())

        return Ordered(signals, {})


class LetsPartiesOrderDecisions(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        class Ordered(Agreement):
            def last_of(self, reader: str, signals: Iterable[Signal]) -> list[Signal]:
                return self.last(signals, self.of_parties(self.signals.values()))

        return Ordered(signals, {})


class DoesNotAskWhoProposed(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        class Recipients(Agreement):
            def parties_of(self, root: Signal) -> list[str]:
                return super().parties_of(root)[1:]

        return Recipients(signals, {})


def _agreement(signals: Mapping[str, Signal], choose: Callable[[list[Signal]], list[Signal]]) -> Agreement:
    class Wrong(Agreement):
        def last(self, signals: Iterable[Signal], among: Iterable[Signal]) -> list[Signal]:
            own = list(signals)
            return choose(own) if own else []

    return Wrong(signals, {})


def _with_root(signals: Mapping[str, Signal], **fields: Any) -> dict[str, Signal]:
    """The signals of a thread whose roots have other fields."""
    changed: Any = {id: each if each.get("reply_to") else {**each, **fields} for id, each in signals.items()}
    return changed  # type: ignore[no-any-return]


class AsksAllWhateverTheRootSays(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        return super().agreement(_with_root(signals, need=None))


class KnowsNoVeto(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        return super().agreement(_with_root(signals, veto=[]))


class LetsARejectStopAQuorum(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        class Stopped(Agreement):
            def has_agreement(self, id: str) -> bool:
                return super().has_agreement(id) and all(
                    self.position(each)[0] != "reject" for each in self.parties
                )

        return Stopped(signals, {})


class LetsAMajorityOverruleTheProposer(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        class Overruled(Agreement):
            def has_agreement(self, id: str) -> bool:
                agreeing = [
                    each
                    for each in self.parties
                    if self.position(each) in (("agree", {id}), ("counter", {id}))
                ]
                need = self.root.get("need")
                return len(agreeing) > int(need) if need else super().has_agreement(id)

        return Overruled(signals, {})


class TakesAnyQuorum(Reference):
    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        try:
            return super().send(session, message, **options)
        except Refused:
            if options.get("need") != "3":
                raise
            del options["need"]
            return super().send(session, message, **options)


class PromotesForAnybody(Reference):
    def receipts(self, signal_id: str) -> list[Receipt]:
        found = super().receipts(signal_id)
        signal = self.signals()[signal_id]
        signals = self.thread(signal.get("thread_id"))
        agreed = any(each["intent"] == "AGREE" for each in signals.values())
        return [{**each, "delivery_state": "acked" if agreed else each["delivery_state"]} for each in found]


class AcceptsUnknownRecipients(Reference):
    def address(self, text: str, allow_unseen: bool) -> str:
        try:
            return super().address(text, allow_unseen)
        except Refused:
            return text


class SendsToThoseItKnows(Reference):
    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        try:
            return super().send(session, message, **options)
        except Refused:
            known = []
            for each in itertools.chain.from_iterable(to.split(",") for to in options.get("to", ())):
                try:
                    known.append(self.address(each, False))
                except Refused:
                    continue
            if known:
                options["to"] = known
                super().send(session, message, **options)
            raise


class ForgetsTheThreadInReplies(Reference):
    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        sent = super().send(session, message, **options)
        if options.get("reply_to") and not options.get("thread_id"):
            sent["thread_id"] = f"thread-{sent['signal_id'][4:]}"
        return sent


class IgnoresIdempotencyKeys(Reference):
    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        options.pop("idempotency_key", None)
        return super().send(session, message, **options)


class TakesAnyIntent(Reference):
    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        if options.get("intent") == "MAYBE":
            options["intent"] = "INFO"
        return super().send(session, message, **options)


class DoesNotKnowTheOldAlias(Reference):
    def take(self, record: Mapping[str, Any]) -> None:
        super().take(record if record["kind"] == "receipt" else {"recipients": [], **record})


class TrustsSwappedText(Reference):
    def ambiguous(self, signals: Mapping[str, Signal]) -> list[str]:
        return []


class KnowsTheProposerByItsSessionAlone(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        return Agreement(signals, {})


class LetsWhoRecordedAProposalAgree(Reference):
    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        asks: dict[str, Signal] = {
            id: {**each, "via": None} if each["intent"] == "PROPOSE" else each for id, each in signals.items()
        }
        return super().agreement(asks)


class TrustsAnswersToOtherText(Reference):
    def counts(self, signal: Signal) -> bool:
        return True


class GivesTheNewestPlaceItsWay(Reference):
    """An exchange that overwrites: whoever comes last is the only one that is heard."""

    def exchange(self) -> None:
        if len(self.records.signals) < len(self.hub.signals):
            self.records.signals = dict(self.hub.signals)
        self.hub.signals = dict(self.records.signals)
        self.hub.receipts = self.records.receipts = {**self.hub.receipts, **self.records.receipts}
        self.hub.sessions = self.records.sessions = {**self.hub.sessions, **self.records.sessions}


class HasOnePlace(Reference):
    """Nothing is wrong with this one: it says what it can't do."""

    lacks = {"second": "one place for everybody"}


class ForgetsToSayWhatItLacks(Reference):
    def __getattribute__(self, name: str) -> Any:
        if name == "watch":
            raise AttributeError(name)
        return super().__getattribute__(name)


class _ForgetsFields(Reference):
    """Stores a signal without these fields."""

    forgets: ClassVar[tuple[str, ...]] = ()

    def signals(self) -> dict[str, Signal]:
        nothing: Any = dict.fromkeys(self.forgets)
        return {id: {**each, **nothing} for id, each in super().signals().items()}


class ForgetsTheRoleOfTheSender(_ForgetsFields):
    forgets = ("sender_role",)


class GuessesRoles(Reference):
    """Sends to somebody whose role is similar."""

    def addresses(self, session: str, text: str, allow_unseen: bool) -> list[str]:
        try:
            return super().addresses(session, text, allow_unseen)
        except Refused:
            return [self.reader(id) for id in self.records.sessions if id != session]


class DoesNotKnowAliases(Reference):
    def role(self, session: str, role: str) -> Descriptor | None:
        found = super().role(session, role)
        return found and {**found, "lifecycle_role": role, "role_alias": None}


class TakesTheRoleFromTheIdentity(Reference):
    def role(self, session: str, role: str) -> Descriptor | None:
        found = super().role(session, role)
        self.records.sessions[session] = {**self.records.sessions[session], "role": None}
        return found

    def signals(self) -> dict[str, Signal]:
        label = {id: each["sender_identity"].split(":") for id, each in super().signals().items()}
        return {
            id: {**each, "sender_role": label[id][1] if label[id][1:] else None}
            for id, each in super().signals().items()
        }


class ForgetsTheRoleThatIsMeant(_ForgetsFields):
    forgets = ("target_role",)


class ForgetsTheDelegation(_ForgetsFields):
    forgets = ("delegation_id",)


class ForgetsTheWorkspace(_ForgetsFields):
    forgets = ("workspace_id",)


class _ChangesReceipts(Reference):
    def changed(self, receipt: Any) -> Any:
        raise NotImplementedError

    def receipts(self, signal_id: str) -> list[Receipt]:
        return [self.changed(each) for each in super().receipts(signal_id)]


class ForgetsWhenItWasRead(_ChangesReceipts):
    def changed(self, receipt: Any) -> Any:
        return {name: value for name, value in receipt.items() if name != "read_at"}


class ReadsEverythingIn1970(_ChangesReceipts):
    def changed(self, receipt: Any) -> Any:
        return {**receipt, "read_at": "1970-01-01T00:00:00.000000Z"}


class ReadsWhenItIsAsked(_ChangesReceipts):
    def changed(self, receipt: Any) -> Any:
        return {**receipt, "read_at": self._now()}


class ForgetsTheKeyOfAReceipt(_ChangesReceipts):
    def changed(self, receipt: Any) -> Any:
        return {**receipt, "idempotency_key": None}


class _ChangesTasks(Reference):
    def changed(self, task: Any) -> Any:
        raise NotImplementedError

    def task(self, task_id: str) -> Task:
        return self.changed(super().task(task_id))  # type: ignore[no-any-return]


class ForgetsTheScopeThatIsRequested(_ChangesTasks):
    def changed(self, task: Any) -> Any:
        return {**task, "requested_ownership_scope": {"responsibility_kinds": []}}


class FlattensMismatches(_ChangesTasks):
    def changed(self, task: Any) -> Any:
        return {
            **task,
            "requested_role": task["actual_role"] or task["requested_role"],
            "role_mismatch": False,
        }


class ConfirmsWhatItIsTold(_ChangesTasks):
    def changed(self, task: Any) -> Any:
        return {**task, "confirmed": task["confirmed"] or task["result"] is not None}


class HidesConflicts(_ChangesTasks):
    def changed(self, task: Any) -> Any:
        return {**task, "conflict": False}


class LetsEverybodyTake(Reference):
    def _check_take(self, session: str, task: Any, shown: Task) -> None:
        return


class DelegatesWithoutRole(Reference):
    def delegate(
        self, session: str, message: str, *, to: str, role: str | None = None, paths: Sequence[str] = ()
    ) -> Task:
        return super().delegate(session, message, to=to, role=role or "reviewer/b", paths=paths or ["."])


class TellsNobodyOfADelegation(Reference):
    def inbox(
        self, session: str, *, mark: bool = True, thread: str | None = None, intents: Sequence[str] = ()
    ) -> list[Signal]:
        found = super().inbox(session, mark=mark, thread=thread, intents=intents)
        return [each for each in found if not each.get("delegation_id")]


class HandsOverAtOnce(Reference):
    def handoff(self, session: str, task_ids: Sequence[str], to: str) -> Task:
        offer = super().handoff(session, task_ids, to)
        taker = next(id for id in self.records.sessions if self.reader(id) == to)
        for id in task_ids:
            self._add(id, taker, "take", "", None)
        return offer


class ClaimsFilesAlone(Reference):
    @staticmethod
    def overlap(some: Iterable[str], others: Sequence[str]) -> bool:
        return bool({*some} & {*others})


class LetsTheFirstClaimWin(Reference):
    def claims(self) -> list[Claim]:
        return [{**each, "contested": False} for each in super().claims()]


class ClaimsAgainstItself(Reference):
    def claim(self, session: str, paths: Sequence[str]) -> Claim:
        if any(self.overlap(each["paths"], paths) for each in self.claims()):
            raise Refused("It is claimed.")
        return super().claim(session, paths)


class KeepsReleasedClaims(Reference):
    def unclaim(self, session: str, claim_id: str) -> None:
        return


class CountsWhatNobodySigned(Reference):
    def is_signed(self, line: str, record: Any, attested: Any) -> bool:
        return True


class BelievesAnySigner(Reference):
    def is_signed(self, line: str, record: Any, attested: Any) -> bool:
        return super().is_signed(line, {}, attested)


class CountsWhatNobodyBroughtIn(Reference):
    def is_signed(self, line: str, record: Any, attested: Any) -> bool:
        return "writer" not in record or super().is_signed(line, record, attested)


class LetsHistoryNameAnybody(Reference):
    def names_nobody(self, record: Any) -> bool:
        return True


class VerifiesTheSignatureAlone(Reference):
    def attested(self, line: str) -> set[tuple[bytes, str | None]]:
        fields = json.loads(line)
        if fields["kind"] != "attestation":
            return set()
        key, hashes, signature = (unurl64(fields[name]) for name in ("key", "lines", "signature"))
        message = (DOMAIN + line.rpartition(',"signature":"')[0]).encode()
        is_valid = ed25519.verify(key, signature, message)
        return {(hashes[at : at + 16], fields["writer"]) for at in range(0, len(hashes), 16) if is_valid}


class JudgesOnArrivalAlone(Reference):
    def judge(self, lines: Iterable[str]) -> list[str]:
        arrived = [*lines]
        return sorted(
            {
                each
                for at, each in enumerate(arrived)
                if each in super(Reference, self).judge(arrived[: at + 1])
            }
        )


class TakesAnyId(Reference):
    def is_own_id(self, id: str, writer: str) -> bool:
        return True


class TakesAnyAddress(Reference):
    def may_speak(self, record: Any, grants: Any) -> bool:
        return True


class GrantsEverything(Reference):
    def may_speak(self, record: Any, grants: Any) -> bool:
        return super().may_speak(record, [{**each, "words": None} for each in grants])


class LetsAnybodyForget(Reference):
    def is_forgotten(self, line: str, record: Any, forgotten: Any) -> bool:
        return super().is_forgotten(line, {"writer": None}, {(each, None) for each, _ in forgotten})


class NeverForgets(Reference):
    def is_forgotten(self, line: str, record: Any, forgotten: Any) -> bool:
        return False
