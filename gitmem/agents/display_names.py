"""Display names: the pool for new sessions, and the checks on requested names."""

from __future__ import annotations

from ..errors import UsageError
from ..git import work_tree_files
from ..outcome import command
from ..text.addresses import words_of
from ..text.name_matching import fold, is_reserved, is_reserved_identity, mixes_scripts
from ..text.sanitize import is_unsafe
from . import session_view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ..store import Store

NEAR_EDITS = 2  # names in the pool differ by more edits than this, so a typo does not give another name
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
    holder = _held(store, store.log.clock.tick()).get(fold(name))
    if holder is None or holder == session_id:
        return
    free = suggestions(store, name)
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


def suggestions(store: Store, name: str) -> list[str]:
    """Return three free names: two numbered ones after the requested name, and one from the pool."""
    held = _held(store, store.log.clock.tick())
    found: list[str] = []
    number = 2
    while len(found) < 2:
        if fold(f"{name}-{number}") not in held:
            found.append(f"{name}-{number}")
        number += 1
    return [*found, pick(store)]


def pick(store: Store) -> str:
    """Return the name for a new session: of the free names the one that has been unused for longest.

    Names within two edits of a held name are skipped. If the pool is exhausted, return `<Name>-2` and so on.
    """
    held = _held(store, store.log.clock.tick())
    shipped = {fold(name) for name in POOL}
    order = list(_by_use(store))
    custom_names = held.keys() - shipped  # shipped names are known to be far enough apart
    for name in order:
        folded = fold(name)
        rivals = custom_names if folded in shipped else held.keys()
        if folded not in held and not _is_near(folded, rivals):
            return name
    taken = [name for name in order if fold(name) in held] or order
    number = 2
    while True:
        for name in taken:
            if fold(f"{name}-{number}") not in held:
                return f"{name}-{number}"
        number += 1


def _is_near(folded: str, others: Collection[str]) -> bool:
    """Return whether a name differs from one of these by so few edits that a typo could give the other one."""
    if not others:
        return False
    from rapidfuzz.distance import Levenshtein

    return any(Levenshtein.distance(folded, other, score_cutoff=NEAR_EDITS) <= NEAR_EDITS for other in others)


def _held(store: Store, now: int) -> dict[str, str]:
    """Return the names that are held at a time, folded, each with its session id."""
    return session_view.names_held(store.db(), now)


def _by_use(store: Store) -> Iterator[str]:
    """Return the pool: names that were never used first, then the least recently used.

    Each clone starts at a position of its own, so two clones that never synced seldom give out the same name. The pool is
    sorted, and goes on in steps of the golden section: names given out one after another do not look alike.
    """
    db = store.db()
    pool = {fold(name): name for name in _pool(store)}
    used = [
        (session_view.last_held(db, folded), _turn(store, place, len(pool)), name)
        for place, (folded, name) in enumerate(pool.items())
    ]
    return (name for _, _, name in sorted(used))


def _pool(store: Store) -> Sequence[str]:
    """Return the names of the work tree's file, one a line; the names that ship where it has none that may be given."""
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
