"""Other keys of a user: which of them may write as whose addresses, and the records by which one goes on as another."""

from __future__ import annotations

from ..errors import StoreError, UsageError
from ..index import grants
from ..outcome import Outcome, Struct, command
from ..text.addresses import CLIENT, PERSON, is_words, words_of, writer_of
from ..text.sanitize import first_of, sanitize
from ..trust.keys import is_writer
from . import mailbox, presence
from .caller import own_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..store import Store
    from .caller import Caller
    from .signers import Signers

WORDS_SHOWN = 3  # of a writer
WORDS_MAX = 100  # of one grant
OWN_MOST = 20  # addresses of this user's, of which others with the same words are looked for
LEFT_MOST = 10  # addresses with mail that nobody here reads


class OtherWriter(Outcome, kw_only=True):
    """A writer that has to do with the key that writes here.

    Attributes:
        known_as: Words of its addresses, people first.
        known_for: Words under which `.gitmem/signers` knows it.
        same_words: Words that are those of own addresses, too.
        you_allow: The words of own addresses that it may write as; `*` for all.
        allows_you: The words of its addresses that the key here may write as; `*` for all.
        goes_on_as_you: Whether it has recorded that it goes on as the key here.
        you_go_on_as_it: Whether the key here has recorded so last.
    """

    writer: str
    known_as: list[str]
    known_for: list[str]
    same_words: list[str]
    you_allow: list[str]
    allows_you: list[str]
    goes_on_as_you: bool
    you_go_on_as_it: bool


class Trust(Outcome, kw_only=True):
    """Which key writes here, and which others may write as whose addresses.

    Attributes:
        writer: The id of the key.
        key_file: Its path.
        key_problem: What is wrong with the key, and what is valid; None if it is fine.
        known_for: Words under which `.gitmem/signers` knows it.
        goes_on_as: The writer whose addresses people and new sessions here have; None if they are of this key.
        signers: The path of that file, if the work tree has one.
        problems: What of it does not count, in sentences.
        recorded: The event of the record that this command wrote; None if there was none to write.
        remark: What that means, and what is left to do on the other machine.
    """

    writer: str
    key_file: str
    key_problem: str | None
    known_for: list[str]
    goes_on_as: str | None
    others: list[OtherWriter]
    signers: str | None
    problems: list[str]
    recorded: str | None = None
    remark: str | None = None
    next: list[str] = []


class Step(Struct):
    """What `gitmem trust WRITER`, or that with `--accept`, is about to record.

    Attributes:
        event: `grant`, `accept` or `endorse`; "" if nothing is left to do here.
        other: The other writer.
        words: Of a grant; none for all.
        question: What to ask before; it says what the record does.
        done: What to say afterwards.
        signature: Of an `endorse`, in base64url.
    """

    event: str
    other: str
    words: list[str]
    question: str
    done: str
    signature: str | None = None


def listing(store: Store) -> Trust:
    """Return which key writes here, and the writers that have to do with it."""
    from ..trust import keys
    from . import signers

    writer, key_file = store.writers.describe()
    db = store.db()
    found = grants.relations(db, writer)
    same: dict[str, list[str]] = {}
    own = presence.addresses_of(db, writer, OWN_MOST)
    for words in sorted({words_of(each) for each in (*own, own_person(store)) if each}):
        for each in presence.addresses_with(db, words):
            if writer_of(each) not in ("", writer):
                same.setdefault(writer_of(each), []).append(words)
    others, file = [], signers.read(store)
    for other in sorted({*found, *same}):
        of = found.get(other, grants.Relation())
        others.append(
            OtherWriter(
                writer=other, known_as=_known_as(store, other), known_for=known_for(store, file, other), same_words=same.get(other, []),
                you_allow=sorted(of.gives), allows_you=sorted(of.takes), goes_on_as_you=of.is_accepted,
                you_go_on_as_it=of.accepts,
            )
        )  # fmt: skip
    yours = known_for(store, file, writer)
    return Trust(
        writer=writer, key_file=key_file, key_problem=store.writers.problem() or None, known_for=yours,
        goes_on_as=_goes_on_as(store, writer, found), others=others, signers=file.path, problems=file.sentences(),
        remark=" ".join(keys.choice_remarks(store.writers, store.repo.git_dir)) or None,
    )  # fmt: skip


def known_for(store: Store, file: Signers, writer: str) -> list[str]:
    """Return the words of addresses of a writer under which a file knows it; of more than `OWN_MOST` addresses of some."""
    if not file.may_know(store, writer):
        return []
    addresses = presence.addresses_of(store.db(), writer, OWN_MOST)
    return sorted(map(words_of, file.known(store, addresses)))


def _goes_on_as(store: Store, writer: str, found: Mapping[str, grants.Relation]) -> str | None:
    """Return the writer whose addresses people here have, else agents whose words it allows; None if that is this one."""
    person = own_person(store)
    if person and writer_of(person) != writer:
        return writer_of(person)
    return next((other for other, of in found.items() if of.accepts and of.takes), None)


def _known_as(store: Store, writer: str) -> list[str]:
    return [words_of(each) for each in presence.addresses_of(store.db(), writer, WORDS_SHOWN)]


def step(store: Store, text: str, only: Sequence[str] = (), *, accept: bool = False) -> Step:
    """Return what there is to record here: a grant to another key, or that this one goes on as that one.

    Args:
        text: The other writer, or an address of it. The own one ends going on as another.
        only: The words that a grant is for; none for all.
        accept: Whether to go on as the other one, which has granted something before; never a grant.

    Raises:
        UsageError: `bad-writer`, `bad-words`, `usage`, `lost-key`, `not-granted` or `goes-on`. Nothing was written.
    """
    writer, other = store.writers.writer(), writer_of(text) or text
    if not is_writer(other):
        raise UsageError(
            f"No writer: {sanitize(text)[:300]}; a writer is 16 lower-case letters and digits, as `gitmem trust` on its machine shows. "
            "Nothing was written.",
            code="bad-writer",
            next=["gitmem trust"],
        )
    words = [_words(each, writer) for each in dict.fromkeys(only)]
    if len(words) > WORDS_MAX:
        raise _bad_words(f"{len(words)} words are too many; one grant has at most {WORDS_MAX}")
    if words and (accept or other == writer):
        raise UsageError(
            "--only belongs to a grant, on the machine that lets another key go on as it. Nothing was written.",
            code="usage",
            next=["gitmem trust --help"],
        )
    if other == writer:
        return _own(store, writer)
    of = grants.relations(store.db(), writer).get(other, grants.Relation())
    if other in _lost(store) and not (accept and of.takes):
        raise UsageError(
            f"The key of {other} wrote here and is gone, so nobody can act as it or let {writer}, the key here, go on as it. Nothing was written.",
            hint=f"It let you go on as it before: {_accept_command(other)}."
            if of.takes
            else "A copy of the key file makes you the lost one again. Else let another key of yours, if there is one, go on with this one.",
            code="lost-key",
            next=["gitmem whoami"],
        )
    return _accept(store, writer, other, of) if accept else _grant(store, writer, other, words, of)


def endorsement(store: Store) -> Step:
    """Return what there is to record so that the user's SSH key vouches for the key that writes here.

    Raises:
        UsageError: `no-signing-key`: git has none.
        StoreError: `ssh-keygen`: it made no signature. Nothing was written.
    """
    import base64

    from . import signers

    key = signers.signing_key(store)
    if key is None:
        raise UsageError(
            "git has no SSH key to sign with: gpg.format must be ssh, and user.signingkey a key. Nothing was written.",
            hint="For example `git config --global gpg.format ssh` and `git config --global user.signingkey ~/.ssh/id_ed25519.pub`.",
            code="no-signing-key",
            next=["gitmem trust --help"],
        )
    writer = store.writers.writer()
    try:
        signature = signers.sign(*key, writer)
    except signers.SshError as error:
        raise StoreError(
            f"{error}. Nothing was written.",
            hint="A key with a passphrase must be in an agent first (`ssh-add`): nothing is asked here.",
            code="ssh-keygen",
            next=["ssh-add"],
        ) from None
    own = [own_person(store), *presence.addresses_of(store.db(), writer, WORDS_SHOWN)]
    patterns = ",".join(dict.fromkeys(words_of(each) for each in own if each)) or "human:MAIL"
    line = f"{patterns} {signers.key_of(signature)}"
    is_new = signature not in signers.signatures(store.db(), lambda by, _: by == writer).get(writer, ())
    return Step(
        signers.EVENT if is_new else "", writer, [], "",
        f"Your SSH key vouches for {writer}. In {signers.FILE}, committed, this line makes it known: {line}",
        base64.urlsafe_b64encode(signature).decode().rstrip("="),
    )  # fmt: skip


def _words(text: str, writer: str) -> str:
    words = words_of(text)
    if not is_words(words) or words.startswith(CLIENT) or writer_of(text) not in ("", writer):
        raise _bad_words(
            f"--only must name an own agent identity or person, such as codex:implementer:prices: {sanitize(text)[:300]}"
        )
    return words


def _bad_words(what: str) -> UsageError:
    return UsageError(f"{what}. Nothing was written.", code="bad-words", next=["gitmem trust"])


def _own(store: Store, writer: str) -> Step:
    if _goes_on_as(store, writer, grants.relations(store.db(), writer)) is None:
        return Step("", writer, [], "", f"{writer} writes here, and goes on as no other one.")
    return Step(
        "accept", writer, [], f"Stop writing under addresses of another key here, and be {writer} again?",
        "You write under addresses of the key here again. Running sessions keep theirs: start new ones.",
    )  # fmt: skip


def _accept(store: Store, writer: str, other: str, of: grants.Relation) -> Step:
    if of.accepts and of.takes:
        return Step("", other, [], "", f"You go on as {other} here already.")
    if of.is_accepted:
        raise UsageError(
            f"{other} goes on as {writer}, the key here, already; two keys don't go on as each other. Nothing was written.",
            hint=f"{command('gitmem', 'trust', other)} on its machine ends that.",
            code="goes-on",
            next=["gitmem trust"],
        )
    if not of.takes:
        raise UsageError(
            f"{other} does not let {writer}, the key here, go on as it, as far as this clone knows. Nothing was written.",
            hint=f"Run {command('gitmem', 'trust', writer)} on its machine first, and sync both.",
            code="not-granted",
            next=["gitmem sync"],
        )
    return Step(
        "accept", other, [],
        f"Go on here as {_named(store, other)}, with {_all(of.takes)} of its addresses? Whoever has that key reads and answers for them, too.",
        f"You go on as {other} here, with {_all(of.takes)} of its addresses. Running sessions keep theirs: start new ones.",
    )  # fmt: skip


def _grant(store: Store, writer: str, other: str, words: list[str], of: grants.Relation) -> Step:
    what = _all(words or {grants.ALL})
    then = (
        "It goes on as you." if of.is_accepted
        else f"On the machine of {other}, sync and run `{_accept_command(writer)}`: then it goes on as you. Sync here first."
    )  # fmt: skip
    if grants.ALL in of.gives or (words and of.gives.issuperset(words)):
        return Step("", other, words, "", f"{other} may write as {what} of your addresses already. {then}")
    instead = "" if not of.takes else f" To go on as it here instead: {_accept_command(other)}."
    return Step(
        "grant", other, words,
        f"This lets {_named(store, other)} act as you: write as {what} of your addresses, read, agree and decide. "
        f"It can't be taken back.{instead} Go on?",
        f"This lets {other} act as you: it may write as {what} of your addresses. {then}",
    )  # fmt: skip


def _accept_command(other: str) -> str:
    return command("gitmem", "trust", other, "--accept")


def _all(words: Iterable[str]) -> str:
    words = sorted(words)
    return (
        "all" if grants.ALL in words else first_of(words, WORDS_SHOWN, shown=lambda each: sanitize(each)[:80])
    )


def _named(store: Store, other: str) -> str:
    known = _known_as(store, other)
    return f"{other} ({', '.join(sanitize(each)[:80] for each in known) or 'of which no record is here yet'})"


def record(store: Store, caller: Caller | None, chosen: Step) -> Trust:
    """Record a step, if there is one; return what is so then.

    Raises:
        StoreError: Nothing is recorded.
    """
    if chosen.event:
        from .. import commit_message

        name = caller.name if caller is not None else store.person()[0]
        author = (
            caller.author if caller is not None else f"{name or 'somebody'} <{store.person()[1] or 'gitmem'}>"
        )
        line = store.line(
            "trust",
            {
                "trust_id": store.new_id("trust"), "event": chosen.event, "other": chosen.other,
                "words": chosen.words, "signature": chosen.signature, "sender_name": name,
            },
        )  # fmt: skip
        store.record([line], commit_message.of_trust(author, name or "somebody", chosen.event, chosen.other))
        store.refresh()
    found = listing(store)
    found.recorded = chosen.event or None
    left = left_over(store) if chosen.event == "accept" else []
    found.remark = " ".join([chosen.done, *(_left_sentence(store, *each) for each in left)])
    found.next = ["gitmem sync"] if chosen.event else []
    return found


def of_same_words(store: Store, address: str) -> str | None:
    """Return a sentence about another writer that has the words of an own address, and how to go on as it; None if there is none."""
    db, own, words = store.db(), store.own_writer(), words_of(address)
    if writer_of(address) != own or not is_words(words):
        return None
    known = grants.relations(db, own) if own else {}
    goes_on = {each for each, of in known.items() if of.is_accepted or of.gives}
    others = [each for each in _others_of(store, own, words) if each not in goes_on]
    if not others:
        return None
    other = next((each for each in others if each in known and known[each].takes), others[0])
    of = known.get(other, grants.Relation())
    if of.takes and of.accepts:
        start = command("gitmem", "session", "start", "--agent-identity", words)
        return (
            f"You go on as {other} here, but this session began before: a new one has that address: {start}."
        )
    first = next(iter(presence.addresses_of(db, other, 1)), None)
    names = [presence.names_by_reader(db).get(first), words_of(first)] if first else []
    whose = ", ".join(sanitize(each) for each in names if each)
    is_you = "If that is you, run"
    if not words.startswith(PERSON):
        is_you = "That is not you, unless the key is your user's, too: ask your user. If it is, run"
    said = f"{words} is known under another key, {other}{whose and f' (of {whose})'}, too"
    if of.takes:
        return f"{said}, which lets you go on as it. {is_you} {_accept_command(other)}."
    if own and not _lost(store) and presence.age_of_writer(db, own) < presence.age_of_writer(db, other):
        # The older key is to go on.
        return f"{said}. {is_you} {command('gitmem', 'trust', other)} here first."
    if not own:
        return f"{said}. {is_you} {_accept_command(other)} here, which makes a key here and says what to run there first."
    there = command("gitmem", "trust", own)
    return f"{said}. {is_you} {there} on its machine, sync both, and run {_accept_command(other)} here."


def has_unread(store: Store, address: str) -> bool:
    """Return whether an own address has its words in common with one of another key that has unread directed signals."""
    own = store.own_writer()
    return writer_of(address) == own and any(
        writer_of(each) not in ("", own) for each in mailbox.recipients_with(store.db(), words_of(address))
    )


def _others_of(store: Store, own: str, words: str) -> list[str]:
    """Return the other writers that are known by words, the oldest ones first.

    One that goes on as another stands for that one. The key here, what goes on as it, and lost keys are left out.
    """
    db, lost = store.db(), _lost(store)
    addresses = {*presence.addresses_with(db, words), *mailbox.recipients_with(db, words)}
    found = set()
    for each in {*map(writer_of, addresses)} - {"", own, *lost}:
        goes_on_as = writer_of(grants.own_address(db, each, words))
        found.add(each if goes_on_as in lost else goes_on_as)
    return sorted(found - {own}, key=lambda each: presence.age_of_writer(db, each))


def _lost(store: Store) -> set[str]:
    """Return the writers that this user was here before, and whose keys are gone."""
    before = store.own().writers - {store.own_writer()}
    return {each for each in before if store.writers.find(each) is None}


def left_over(store: Store) -> list[tuple[str, int]]:
    """Return addresses of this user that it does not write under any more and that have unread directed signals, and how many of these."""
    db, own = store.db(), store.own_writer()
    found: list[tuple[str, int]] = []
    for writer in sorted({own, *store.own().writers}):
        if writer == own and not grants.is_any_accepted(db):
            continue
        for address in presence.addresses_of(db, writer, OWN_MOST):
            if address == store.own_address(words_of(address)) or not _is_left(store, address):
                continue
            count = len(
                {id for _, id in db.execute(*mailbox.directed_to(db, address, None, None, unread=True))}
            )
            if count and len(found) < LEFT_MOST:
                found.append((address, count))
    return found


def _is_left(store: Store, address: str) -> bool:
    """Return whether an address of this user's keys is that of nobody else, who has another mail address or is at work in another clone."""
    words = words_of(address)
    if words.startswith(PERSON):
        return words == words_of(own_person(store) or "")
    return not any(one.is_current and not one.here for one in presence.of_identity(store, address))


def _left_sentence(store: Store, address: str, count: int) -> str:
    """Return that an address has unread signals, and what to do about them."""
    may = store.may_write_as(address)
    return (
        f"{count} unread signal{'s are' if count > 1 else ' is'} for {address}, the address under "
        f"{'this' if may else 'another'} key: {command('gitmem', 'inbox', '--as' if may else '--for', address)}"
        "."
    )


def left_sentences(store: Store) -> list[str]:
    """Return for each address that this user has left a sentence about its unread signals."""
    return [_left_sentence(store, *each) for each in left_over(store)]
