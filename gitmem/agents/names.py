"""Names: those that sessions may take, whom a name means in this clone, and what to say of one that nobody has.

A peer can push a session that claims any name since any time, and the log then shows the name for that session. This
clone therefore *pins* each name that it wrote to, acted as or started a session under, in a file of its own. A pin decides whom a
typed name means here, or makes a command refuse; it never changes what the log shows. Deleting the files is safe.

rapidfuzz is imported only for a comparison: its import costs twice the start of Python.
"""

from __future__ import annotations

import os

from .. import local_files
from ..commit_message import sanitize
from ..errors import UsageError
from ..order.session import HOLD_MICROS
from ..outcome import Struct, command
from ..records.ids import unit_key
from ..text.addresses import words_of
from ..text.digests import sha256
from ..text.name_matching import (
    fold,
    is_identity,
    is_reserved,
    is_reserved_identity,
    is_word,
    mixes_scripts,
    strip_numbers,
)  # fmt: skip
from ..text.sanitize import is_unsafe, within
from . import presence
from .presence import Presence, format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..store import Store

NAME_MAX = 64
FILE = ".gitmem/names"  # of the work tree
FILE_BYTES_MAX = 64 * 1024
GOLDEN_SECTION = (5**0.5 - 1) / 2

POOL: tuple[str, ...] = tuple(
    """
    Abel Adleman Aldrin Alhazen Alvarez Ampere Amundsen Apgar Archimedes Ashby Ashkin Asimov Atiyah Averroes
    Avicenna Avogadro Babbage Backus Banach Banting Bardeen Barents Barnard Basov Battuta Bayliss Beaufort
    Becquerel Behring Bengio Benioff Bernoulli Berzelius Bessel Bessemer Bhabha Bhaskara Binnig Biot
    Bjerknes Blalock Bleriot Bohr Boltzmann Bolzano Boole Bordet Borlaug Bourbaki Brahe Branly Brattain
    Brunel Buffon Bunsen Burbidge Buridan Burnell Cailliau Cajal Cantor Cardano Carnap Carson Carver Casimir
    Cassini Cauchy Cavendish Celsius Cerf Chadwick Chagas Chandra Chargaff Charney Charpak Chebyshev
    Cherenkov Clausius Cockcroft Compton Conway Coulomb Cournot Cousteau Crick Croll Crutzen Curie Daguerre
    Dalton Dantzig Darwin Dedekind Descartes Diffie Dijkstra Dirac Doudna Dubos Dufay Dyson Earhart Eccles
    Eckert Ehrlich Eiffel Einstein Elion Enders Engelbart Englert Erdos Esaki Euclid Euler Ewing Faraday
    Fermi Fibonacci Fizeau Fleming Flerov Florey Foucault Fourier Franklin Fraunhofer Frege Fresnel Gagarin
    Galen Galileo Galois Galvani Gassendi Gauss Geiger Geim Gentzen Gerlach Germain Gibbs Glashow Godel
    Goeppert Golgi Goodall Grignard Guerin Haar Hadamard Haldane Halley Hamilton Hardy Haroche Harsanyi
    Hartline Hawking Helmholtz Hermite Herschel Hertz Hevesy Higgs Hilbert Hillary Hodgkin Hofmann Hopcroft
    Hopfield Hopper Hubble Huffman Humboldt Hurwitz Huygens Hypatia Imhotep Iwasaki Jacobi Jacquard Janssen
    Jazari Jemison Jenner Kajita Kaplan Kariko Keeling Kekule Kelvin Kendrew Kernighan Ketterle Keynes
    Khayyam Khorana Kilby Kindi Kircher Kirchhoff Kitasato Kleene Knowles Knuth Kobayashi Kolmogorov
    Koopmans Kornberg Korolev Kramers Kroto Kummer Kuznets Lagrange Lamarck Lamport Lampson Landau Langevin
    Laplace Laveran Lavoisier Leakey Leavitt Lebesgue Lederman Legendre Leibniz Leonov Leontief Liebig
    Lifshitz Liskov Lister Lockyer Lorentz Lotka Lovelace Lumiere Lwoff Lyapunov Lyell Maathai Maclane
    Madhava Manabe Marconi Margulis Markov Maturana Maxwell Mayer McCarthy McMillan Meitner Mendel Mendeleev
    Mercalli Merkle Mersenne Meselson Messier Metcalfe Micali Michelson Milnor Moivre Monod Morita Moseley
    Mott Mourou Munk Nagaoka Nakamura Nambu Negishi Neumann Newcomen Newell Newton Niepce Noether Noguchi
    Nollet Noyce Noyori Nyquist Oberth Ochoa Oersted Omura Onnes Onsager Oparin Oresme Ostrom Pascal Pasteur
    Pauli Pavlov Peano Peebles Penrose Penzias Perelman Perlis Piaget Piccard Planck Plotkin Plucker
    Poincare Poisson Politzer Polya Poncelet Popov Postel Prandtl Priestley Ptolemy Pythagoras Ramanujan
    Rankine Rayleigh Revelle Reynolds Ricardo Richter Riemann Ritchie Rivest Roebling Roentgen Rozycki Rubin
    Rutherford Sabatier Sagan Sakharov Salk Sandage Sarabhai Savart Schwann Seaborg Seacole Secchi Sechenov
    Selten Shamir Shannon Shen Sifakis Sikorsky Sircar Skolem Slipher Smeaton Sobrero Soddy Somerville
    Stirling Stokes Strabo Stroustrup Struve Sturm Synge Takamine Tarski Telford Tenzing Thacker Tharp
    Thoreau Thorne Thurston Tiselius Tombaugh Tomonaga Torricelli Torvalds Toyoda Turing Tyndall Ulam Ullman
    Urey Valiant Vapnik Varela Veltman Ventris Vesalius Vieta Virchow Volterra Vygotsky Waals Weinberg
    Weissman Wheeler Wiesel Wigner Wilczek Wiles Wineland Wirth Wittig Wohler Wright Yalow Yersin Yonath
    Yukawa Zadeh Zeeman Zermelo Zernike Zhang Ziegler Zuse Zwicky Zworykin Zygalski
    """.split()  # noqa: SIM905 - a list literal would be four times as many lines
)


def check(name: str, again: Sequence[str] = ("gitmem", "session", "start")) -> None:
    """Reject a text that can't be a display name because it is not addressable or could deceive.

    Args:
        again: The command of the request, without the name.

    Raises:
        UsageError: `bad-name`.
    """
    wrong = _defect(name)
    if wrong:
        raise UsageError(
            f"Invalid name: {ascii(name)[:80]} {wrong}. Nothing was recorded.",
            hint="Use letters of one script, digits, dashes and spaces, or omit --name to get a name from the pool.",
            code="bad-name",
            next=[command(*again)],
        )


def check_identity(identity: str | None) -> None:
    """Reject an agent identity that looks like another one or like a person. Its form is validated at the write.

    Raises:
        UsageError: `bad-identity`.
    """
    wrong, identity = "", words_of(identity or "")
    if identity and any(map(is_unsafe, identity)):
        wrong = "has control, bidi or invisible characters"
    elif identity and fold(identity).startswith("human:"):
        wrong = "starts like the address of a person"
    elif identity and is_reserved_identity(identity):
        wrong = "resembles an id or a group"
    if identity and wrong:
        raise UsageError(
            f"Invalid agent identity: {ascii(identity)[:80]} {wrong}. Nothing was recorded.",
            hint="Use owner:role:purpose, three parts without invisible characters.",
            code="bad-identity",
            next=["gitmem session start", "gitmem roster --all"],
        )


def _defect(name: str) -> str:
    """Return what is wrong with a name, as the rest of a sentence; "" for a valid name."""
    if not name or name != name.strip():
        return "is empty, or begins or ends with white space"
    if len(name) > NAME_MAX:
        return f"has {len(name)} characters; the maximum is {NAME_MAX}"
    if not name.isprintable() or any(map(is_unsafe, name)):
        return "has control, bidi or invisible characters"
    if not any(char.isalnum() for char in name):
        return "has no letter or digit"
    if is_reserved(name):
        return "resembles an option, an id, an address, a list or a group"
    if mixes_scripts(name):
        return "mixes letters of several scripts and could imitate another name"
    return ""


def claim(
    store: Store,
    name: str,
    *,
    session_id: str | None = None,
    again: Sequence[str] = ("gitmem", "session", "start"),
) -> None:
    """Check that a name may be requested now.

    Args:
        session_id: The requesting session, if it exists. It may keep its own name.
        again: The command of the request, without the name.

    Raises:
        UsageError: `bad-name`, or `name-in-use` with three names that are free.
    """
    check(name, again)
    holder = _held(store).get(fold(name))
    if holder is None or holder == session_id:
        return
    free = free_names(store, name)
    if store.is_of_another_key(holder):
        way = f"{holder} was started under another key, so it can be neither continued nor ended here."
    else:
        way = (
            f"If {holder} is yours, continue it with `export GITMEM_SESSION={holder}`, "
            f"or release {name} with `gitmem session end --as {holder}`."
        )
    raise UsageError(
        f"The name {name} is in use by {holder}. Nothing was recorded.",
        hint=f"Free names: {', '.join(free)}; without --name you get one from the pool. {way}",
        code="name-in-use",
        suggestions=free,
        next=[command(*again, "--name", other) for other in free],
    )


def free_names(store: Store, name: str) -> list[str]:
    """Return three free names: two numbered ones after the requested name, and one from the pool."""
    held = _held(store)
    numbered = (f"{name}-{number}" for number in range(2, len(held) + 4))
    return [*[each for each in numbered if fold(each) not in held][:2], pick(store)]


def pick(store: Store) -> str:
    """Return the name for a new session: of the free names the one that has been unused for longest.

    If the pool is exhausted, return `<Name>-2` and so on.
    """
    held, order = _held(store), list(_by_use(store))
    for number in range(1, len(held) + 2):
        for name in order:
            numbered = name if number == 1 else f"{name}-{number}"
            if fold(numbered) not in held:
                return numbered
    raise AssertionError("more names are held than there are")


def _held(store: Store) -> dict[str, str]:
    """Return the names that are held now, folded, each with its session id."""
    from . import session_view

    return session_view.names_held(store.db(), store.log.clock.tick())


def _by_use(store: Store) -> Iterator[str]:
    """Return the pool: names that were never used first, then the least recently used.

    Each clone starts at a position of its own, so two clones that never synced seldom give out the same name. The pool is
    sorted, and goes on in steps of the golden section: names given out one after another do not look alike.
    """
    from . import session_view

    db = store.db()
    pool = {fold(name): name for name in _pool(store)}
    used = [
        (session_view.last_held(db, folded), _turn(store, place, len(pool)), name)
        for place, (folded, name) in enumerate(pool.items())
    ]
    return (name for _, _, name in sorted(used))


def _pool(store: Store) -> Sequence[str]:
    """Return the names of the work tree's file, one a line; the names that ship where it has none that may be given."""
    from ..git import work_tree_files

    top = store.repo.worktree
    try:
        real = work_tree_files.resolve(top, FILE) if top is not None else None
        text = work_tree_files.read_text(real, FILE_BYTES_MAX) if real is not None else ""
    except (OSError, ValueError):
        text = ""
    return [name for line in text.split("\n") if not _defect(name := line.strip())] or POOL


def _turn(store: Store, place: int, count: int) -> float:
    """Return what sorts the places of a pool: from this clone's beginning on, with neighbours far apart."""
    first = int.from_bytes(store.log.clone_id().encode(), "big")
    return (place - first) % count * GOLDEN_SECTION % 1.0


def refuse_mixed(text: str) -> None:
    """Reject a text that mixes scripts.

    Raises:
        UsageError: `unknown-recipient`.
    """
    if not any(mixes_scripts(part) for part in text.split(":")):
        return
    raise UsageError(
        f"{ascii(text)[:80]} mixes letters of several scripts and could imitate another name. "
        "Nothing was written.",
        hint="Type the name, or use the session id from the roster.",
        code="unknown-recipient",
        next=["gitmem roster"],
    )


PINS = "pins"
PIN_MAX_BYTES = 4096


class NamePin(Struct):
    """A name, and whom it meant at its first use here.

    Attributes:
        name: The name as displayed then.
        session_id: The session that had it.
        identity: The agent identity of that session, or "".
    """

    name: str
    session_id: str
    identity: str


def pin_of(store: Store, name: str) -> NamePin | None:
    """Return the pin of a name in any spelling; None without one, and for a torn file."""
    try:
        pinned, session_id, identity, rest = (
            local_files.read(_pin_path(store, name), PIN_MAX_BYTES).decode().split("\n")
        )
    except ValueError:
        return None
    is_whole = session_id and not rest and fold(pinned) == fold(name)
    return NamePin(pinned, session_id, identity) if is_whole else None


def pinned(
    store: Store, name: str, *, code: str = "ambiguous-recipient"
) -> tuple[Presence, str | None] | None:
    """Return whom a pinned name means here, and a warning if others claim it.

    Args:
        name: The name as typed.
        code: The code of the error.

    Returns:
        None if the name is not pinned or the pin no longer applies. The log then decides.

    Raises:
        UsageError: The holder is gone or has another name, and another session claims this one; or the holder has
            another identity.
    """
    pin = None if is_reserved(name) else pin_of(store, name)  # identities and ids are exact
    kept = _holder(store, pin) if pin is not None else None
    if pin is None or kept is None or (not kept.is_current and store.now() >= kept.record_at + HOLD_MICROS):
        return None
    others = _claimants(store, name, kept)
    shown = sanitize(name)[:80]
    if kept.is_current and _asks_for(kept, name):
        warning = (
            f"{', '.join(others)} also claims the name {shown}. In this clone it still means {kept.reader}."
        )
        return kept, warning if others else None
    if not others:
        return None
    state = (
        f"ended {format_age(store.now() - kept.ended)}"
        if kept.ended is not None
        else f"was last seen {format_age(kept.age)}"
    )
    if kept.is_current:
        state = f"is now called {kept.name}"
    raise UsageError(
        f"{shown} is ambiguous: in this clone it meant {kept.reader}, which {state}, and now {', '.join(others)} claims it. "
        "Nothing was written.",
        hint="Check who they are, then use the id of the one you mean.",
        code=code,
        suggestions=[presence.describe(kept, kept.reader), *others],
        next=["gitmem roster --all"],
    )


def note_pin(store: Store, name: str, session_id: str, identity: str | None) -> None:
    """Pin a displayed name to its present holder. A state folder that can't be written is not an error.

    Args:
        session_id: The session that has the name.
        identity: Its agent identity.
    """
    known, path = pin_of(store, name), _pin_path(store, name)
    is_same = known is not None and (
        known.identity == identity if identity else (known.name, known.session_id) == (name, session_id)
    )
    if is_same:
        return
    content = "\n".join((name, session_id, identity or "", "")).encode("utf-8", "replace")
    local_files.try_replace(path, content, folders=True)


def repin(store: Store, one: Presence, *former: str) -> None:
    """Pin the name that a session of this clone has taken, and remove the pins of the names that it gave up."""
    for name in former:
        pin = pin_of(store, name)
        if pin is not None and pin.session_id == one.session_id:
            local_files.remove_quietly(_pin_path(store, name))
    note_pin(store, one.name, one.session_id, one.agent_identity)


def _claimants(store: Store, name: str, kept: Presence) -> list[str]:
    """Return descriptions of others that the log has for a name: by name, as a client's id, or as an address."""
    found: dict[str, Presence | None] = {one.reader: one for one in presence.of_name(store, fold(name))}
    by_client = presence.of_published_client(store, name)
    if by_client is not None:
        found.setdefault(by_client.reader, by_client)
    if presence.is_known_reader(store, name):
        found.setdefault(name, None)
    found.pop(kept.reader, None)
    found.pop(kept.session_id, None)
    return [
        presence.describe(one, reader) if one is not None else f"the address {sanitize(reader)[:80]}"
        for reader, one in list(found.items())[:3]
    ]


def _holder(store: Store, pin: NamePin) -> Presence | None:
    """Return the session of a pin; if its identity has several, one that is at work and asks for the name, of this clone if it can be."""
    sessions = presence.of_identity(store, pin.identity) if pin.identity else []
    if not sessions:
        return presence.get(store, pin.session_id)

    def rank(one: Presence) -> tuple[bool, bool, bool, int]:
        return one.is_current, _asks_for(one, pin.name), one.here, one.record_at

    return max(sessions, key=rank)


def _asks_for(one: Presence, name: str) -> bool:
    """Return whether a session shows under a name, or would if no other session claimed it."""
    return fold(one.name) == fold(name) or strip_numbers(fold(one.asked)) == strip_numbers(fold(name))


def _pin_path(store: Store, name: str) -> str:
    return os.path.join(
        store.repo.state, PINS, sha256(fold(name).encode("utf-8", "replace")).hexdigest()[:32]
    )


SUGGESTIONS_MAX = 3
# Share of equal characters, for searches and suggestions: half accepts `plnk` → Planck and rejects unrelated
# names. No share is safe for identifiers: `…:host8` has 0.95 of `…:host7`.
SIMILARITY_MIN = 0.5
PERSON_MIN = 0.8  # share of equal characters of a person's name
PEOPLE_MAX, IDENTITIES_MAX = 50, 10_000


def is_known(store: Store, text: str) -> bool:
    """Return whether a session has or had this name, or this id or identity is known."""
    return bool(
        presence.readers_named(store.db(), text)
        or presence.is_known_reader(store, text)
        or presence.get(store, text)
    )


def suggested(store: Store, text: str, *, here: bool = False) -> list[str]:
    """Return at most three sessions or identities that could be meant, each with distinguishing details.

    Args:
        here: Only those of sessions that were started in this clone.
    """
    folded = fold(text)
    found: dict[str, tuple[float, str]] = {}
    before = presence.last_holder(store, folded)
    if before is not None and (before.here or not here):
        found[before.reader] = (1.0, presence.describe(before, before.reader))
    for score, one in _ranked(store, text):
        if score >= SIMILARITY_MIN and (one.here or not here):
            found.setdefault(
                one.reader, (score, presence.describe(one, one.name if one.held else one.reader))
            )
    for score, identity in _identities(store, text):
        if score >= SIMILARITY_MIN and identity not in found:
            sessions = presence.of_identity(store, identity)
            if here and not any(one.here for one in sessions):
                continue
            found[identity] = (score, presence.describe(sessions[0], identity) if sessions else identity)
    for score, identity, name in [] if here else _people(store, text):
        if score >= PERSON_MIN:
            found[identity] = (score, f"{identity} ({name})")
    best = sorted(found.values(), key=lambda each: -each[0])
    return [words for _, words in best[:SUGGESTIONS_MAX]]


def matching(store: Store, text: str, *, all: bool, most: int) -> list[Presence]:
    """Return the sessions that a roster query means, of so many: first those that contain the text, then similar ones."""
    ranked = _ranked(store, text, all=all, most=most)
    return [one for score, one in ranked if score >= SIMILARITY_MIN]


def _ranked(
    store: Store, text: str, *, all: bool = False, most: int = presence.READ_MAX
) -> list[tuple[float, Presence]]:
    scored = [(_score(text, one), one) for one in presence.shown(store, all=all, most=most).values()]
    return sorted(scored, key=lambda each: (-each[0], -each[1].last_seen, each[1].session_id))


def _score(text: str, one: Presence) -> float:
    """Return from 0 to 1 how well the text fits the session's name, identity or other fields."""
    from rapidfuzz.distance import Levenshtein

    query = fold(text)
    identity = fold(words_of(one.agent_identity or ""))
    about = [fold(one.record.get(field, "")) for field in ("lane", "worktree", "initiative_id", "client")]
    about += filter(None, (one.role, one.record.get("lifecycle_role"), one.record.get("specialty_profile")))
    about.append(unit_key(one.wu_id))
    if query in (fold(one.name), identity, one.session_id):
        return 1.0
    if query and (query in identity.split(":") or query in about or unit_key(query) == about[-1]):
        return 0.9
    if len(query) >= 3 and any(query in each for each in (fold(one.name), identity, one.session_id, *about)):
        return 0.8
    return max(Levenshtein.normalized_similarity(query, each) for each in (fold(one.name), identity) if each)


def _identities(store: Store, text: str) -> list[tuple[float, str]]:
    """Return agents and people that the log has seen, regardless of their sessions."""
    from rapidfuzz.distance import Levenshtein

    if ":" not in text and "@" not in text:
        return []
    from . import session_view

    known = session_view.first_identities(store.db(), IDENTITIES_MAX)
    asked = fold(words_of(text))
    scored = [(Levenshtein.normalized_similarity(asked, fold(words_of(each))), each) for each in known]
    return sorted(scored, key=lambda each: (-each[0], each[1]))[: 2 * SUGGESTIONS_MAX]


def _people(store: Store, text: str) -> list[tuple[float, str, str]]:
    """Return the addresses of people by the display names in their latest signals. Anybody can use any display name."""
    from rapidfuzz.distance import Levenshtein

    from . import mailbox

    found = []
    for record in mailbox.last_of_people(store.db(), PEOPLE_MAX):
        name = within(record.get("sender_name") or "", NAME_MAX)
        if name:
            likeness = Levenshtein.normalized_similarity(fold(text), fold(name))
            found.append((likeness, record["sender_identity"], name))
    return found


DID_YOU_MEAN = "Did you mean one of these? Check who it is, not only the spelling."


def recipient_error(store: Store, text: str, option: str) -> UsageError:
    """Return the error for an unknown recipient.

    Args:
        store: The open store.
        text: The text as typed.
        option: The option of the text, such as `--to`.
    """
    from ..log.ref import REMOTES_PREFIX

    former = presence.last_holder(store, fold(text)) if text and not is_reserved(text) else None
    if former is not None:
        return _former_name(store, text, option, former)
    suggestions = suggested(store, text)
    hint = DID_YOU_MEAN if suggestions else ""
    next_commands = [
        command("gitmem", "roster", text)
        if suggestions and text.isprintable() and len(text) <= 80
        else "gitmem roster"
    ]
    if not store.git.refs(REMOTES_PREFIX) and store.has_remote():
        hint = f"{hint} This clone has never synced: `gitmem sync` fetches the other agents.".strip()
        next_commands.insert(0, "gitmem sync")
    elif is_word(text):
        hint = "This word is reserved and cannot be a name. To reach everybody, use --broadcast."
    elif is_identity(text):
        hint = f"{hint} To send to an identity that is not in the log yet, use --allow-unseen.".strip()
    elif not suggestions and store.has_remote():
        hint = "`gitmem roster` lists the agents; it knows a new one of another clone after `gitmem sync`."
        next_commands.append("gitmem sync")
    return UsageError(
        f"{option}: unknown recipient: {sanitize(text)[:80] or '(empty)'}. Nothing was written.",
        hint=hint or "`gitmem roster` lists the agents.",
        code="unknown-recipient",
        suggestions=suggestions,
        next=next_commands,
    )


def caller_error(store: Store, text: str) -> UsageError:
    """Return the error for a `--as` that names nobody. It only suggests sessions of this clone, and never guesses."""
    shown = sanitize(text)[:80] or "(empty)"
    former = presence.last_holder(store, fold(text)) if text and not is_reserved(text) else None
    what = f"; {_why_former(store, text, former)}" if former is not None else ""
    suggestions = suggested(store, text, here=True) if text else []
    return UsageError(
        f"--as: unknown session, identity or name: {shown}{what}. Nothing was written.",
        hint=DID_YOU_MEAN
        if suggestions
        else "Give an exact session id, an agent identity or the name of an active session; "
        "an identity becomes known when its first session starts.",
        code="unknown-session",
        suggestions=suggestions,
        next=["gitmem roster --all", "gitmem session start"],
    )


def ambiguous_id(text: str, found: Sequence[Presence]) -> UsageError:
    """Return the error for a text that is the beginning of several session ids.

    Args:
        text: The text as typed.
        found: The sessions.
    """
    return UsageError(
        f"Ambiguous session id: {sanitize(text)} is the beginning of several. Nothing was written.",
        hint="Use a full id or a longer prefix.",
        code="ambiguous-recipient",
        suggestions=[presence.describe(one, one.session_id) for one in found[:3]],
        next=["gitmem roster --all"],
    )


def _former_name(store: Store, text: str, option: str, former: Presence) -> UsageError:
    """Return the error for a name that a session had and no longer has."""
    shown, what = sanitize(text)[:80], _why_former(store, text, former)
    to = sanitize(former.reader)
    if former.agent_identity is not None and former.ended is not None:
        hint = f"To reach the next session of the same agent, send to its identity: --to {to}."
    elif former.ended is not None and former.harness_session is not None:
        hint = f"Its conversation reads it if it is resumed: --to {to}. The roster has the agents at work."
    elif former.ended is not None:
        hint = (
            "It has no agent identity, so no later session reads its signals. Send to an agent in the roster."
        )
    else:
        hint = f"To reach it anyway, send to {to}."
    return UsageError(
        f"{option}: unknown recipient: {shown}; {what}. Nothing was written.",
        hint=hint,
        code="unknown-recipient",
        suggestions=suggested(store, text),
        next=["gitmem roster"],
    )


def _why_former(store: Store, text: str, former: Presence) -> str:
    """Return what became of the session that had a name."""
    session = f"the session of that name, {former.session_id},"
    if former.ended is not None:
        return f"{session} ended {format_age(store.now() - former.ended)}"
    if fold(former.name) != fold(text):
        return f"{session} is now called {sanitize(former.name)}"
    return f"{session} was last seen {format_age(former.age)}, and the name is free"


def ended_session(session: Presence, now: int) -> str:
    """Return the remark for signals to the id of an ended session.

    Args:
        session: The session; `ended` is set.
        now: Microseconds since the epoch.
    """
    when = f"{sanitize(session.name)} ({session.session_id}) ended {format_age(now - (session.ended or now))}"
    if session.agent_identity is not None:
        return f"{when}; this is sent to its identity {sanitize(session.agent_identity)}, whose sessions all read it."
    if session.harness_session is not None:
        return f"{when} and has no agent identity: only its conversation reads this, if it is resumed. `gitmem roster` lists active agents."
    return f"{when} and has no agent identity, so no later session reads this. `gitmem roster` lists active agents."


def ended_identity(identity: str, latest: Presence, now: int) -> str:
    """Return the remark for signals to an identity whose sessions have all ended.

    Args:
        identity: The agent identity.
        latest: Its session that was seen last; `ended` is set.
        now: Microseconds since the epoch.
    """
    when = f"the last one, {sanitize(latest.name)}, {format_age(now - (latest.ended or now))}"
    return f"All sessions of {sanitize(identity)} have ended ({when}); its next session reads this."


def unheld_identity(identity: str) -> str:
    """Return the remark for signals to a known identity that no session has."""
    return f"No session has the identity {sanitize(identity)} now: the signal is read when one takes it."
