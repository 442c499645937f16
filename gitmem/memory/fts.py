"""Full-text search: texts and queries as words, and an FTS5 table that only `search` creates and updates.

It is not part of the view: SQLite without FTS5 supports everything else, and writing nodes costs nothing extra.
`meta` has `VERSION` and the number of the last line indexed. Any operation that empties the index empties `meta`,
too. A query becomes expressions that cannot contain syntax from the user.
"""

from __future__ import annotations

import re
from math import log
from unicodedata import category, normalize

from ..index.catch_up import last_line
from ..outcome import Struct
from . import stored_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..index.index_file import sqlite3
    from ..order.node import VersionedNode
    from ..outcome import Progress
    from .listing import Filter


WORD_MAX = 64  # characters: longer words are blobs; the index and the query truncate them alike
PARTS_MAX = 6  # of a name that is also indexed as a whole
KNOWN_MAX = 50_000  # names in the cache of a process: most occur repeatedly
KNOWN_LONGEST = 200
# Scripts without spaces between words: each character is a word, and a sequence of them a phrase.
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0x1B000, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip
# Accents, Hebrew points and Arabic vowel signs: users omit them in queries.
_LOOSE_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
# A name consists of parts: `HTTPServer`, `snake_case`, `kebab-case`, `sha256`. The patterns match character
# classes, one letter each (see `_Classes`), so positions are the same as in the text.
_NAME = re.compile("[Ulsd]+(?:_+[Ulsd]+)*|c")
_ASCII_NAME = re.compile("[A-Za-z0-9]+(?:[_-]+[A-Za-z0-9]+)*")
_PART = re.compile("UU+s(?![Ulsd])|U+(?![ls])|U?[ls]+|d+")
_RUN = re.compile("[Ulsd]+")


class NameToken:
    """A run of letters and digits with `_` and `-` between: its parts, and the whole as one word if it has several."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.parts = tuple(parts)
        whole = "".join(parts) if 1 < len(parts) <= PARTS_MAX else ""
        self.whole = whole if not whole.isnumeric() and len(whole) <= WORD_MAX else ""


class _Classes(dict[int, str]):
    """The class of a character, by code point.

    U upper case, l lower case or a letter without case, s the letter s, d digit, c a word by itself, _ a joiner of
    the parts of a name, or a space.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if any(first <= code <= last for first, last in _UNSPACED):
            found = "c" if char.isalnum() or category(char)[0] == "M" else " "
        elif char.isupper() or char.istitle():
            found = "U"
        elif char.isnumeric():
            found = "d"
        elif char.isalpha() or category(char)[0] == "M":
            found = "s" if char == "s" else "l"
        else:
            found = "_" if char in "_-" else " "
        self[code] = found
        return found


class _Plain(dict[int, str]):
    """A character without case, accent and form, by code point: `É` is e, `ß` is ss, `Ａ` is a."""

    def __missing__(self, code: int) -> str:
        bare = _LOOSE_MARKS.sub("", normalize("NFKD", chr(code)))
        found = normalize("NFC", _LOOSE_MARKS.sub("", normalize("NFKD", bare.casefold())))
        self[code] = found
        return found


_CLASSES = _Classes()
_PLAIN = _Plain()
_known: dict[str, NameToken] = {}


def words(text: str) -> list[str]:
    """Return the words of a text in their order, the parts of a name one by one."""
    return [part for name in named(text) for part in name.parts]


def whole(text: str) -> list[str]:
    """Return names of several parts as one word each: `file_name`, `fileName` and `filename` become equal."""
    return [name.whole for name in named(text) if name.whole]


def named(text: str) -> list[NameToken]:
    """Return the names of a text in their order; most words are names of one part."""
    if text.isascii():
        found = _ASCII_NAME.findall(text)
    else:
        text = normalize("NFKC", text)  # one code point for each accented letter
        found = [text[each.start() : each.end()] for each in _NAME.finditer(text.translate(_CLASSES))]
    if len(_known) > KNOWN_MAX:
        _known.clear()
    return [_known.get(name) or _learn(name) for name in found]


def find_words(text: str, wanted: Callable[[str], bool]) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and word of each wanted word of a text; a name that only matches as a whole is one word."""
    for start, end in (each.span() for each in _NAME.finditer(text.translate(_CLASSES))):
        raw = text[start:end]
        name = _known.get(raw) or _learn(raw)
        if any(map(wanted, name.parts)):
            for (first, last), word in _name_parts(raw):
                if wanted(word):
                    yield start + first, start + last, word
        elif name.whole and wanted(name.whole):
            yield start, end, name.whole


def _name_parts(raw: str) -> list[tuple[tuple[int, int], str]]:
    """Return the parts of a name, each with its start and end."""
    classes = raw.translate(_CLASSES)
    return [(span, _plain(raw[slice(*span)])) for span in _parts(classes, 0, len(raw))]


def is_unspaced(name: NameToken) -> bool:
    """Return whether it is one character of a script without spaces between words."""
    return len(name.parts) == 1 and _CLASSES[ord(name.parts[0][0])] == "c"


def _learn(text: str) -> NameToken:
    name = NameToken([word for _, word in _name_parts(text) if word])
    if len(text) <= KNOWN_LONGEST:
        _known[text] = name
    return name


def _plain(part: str) -> str:
    return part.translate(_PLAIN)[:WORD_MAX]


def _parts(classes: str, start: int, end: int) -> list[tuple[int, int]]:
    if classes[start] == "c":
        return [(start, end)]
    found = []
    for run in _RUN.finditer(classes, start, end):
        parts = [part.span() for part in _PART.finditer(classes, run.start(), run.end())]
        # An id or a hash such as 6f3k9q alternates between digits and letters: it is one word.
        is_id = len(parts) > 3 and len(run.group()) < 2.5 * len(parts)
        found += [run.span()] if is_id else parts
    return found


VERSION = 3  # of the tables, and of the rules in `tokenize` and `order.node`
TABLE, ROWS, VOCABULARY = "memory_words", "memory_words_row", "memory_words_vocabulary"
KEY = TABLE  # in `meta`
SIMILAR_LEAST = 4  # letters of a word that similar ones are found for
COUNTED_MAX = 50_000  # words counted before they are written
LINES_AT_ONCE = 5_000  # in one transaction: other writers wait for it
IDLE_LINES = 10_000  # lines of other kinds that may be rescanned before the mark is moved
# Weights of hits. Tags are chosen deliberately. Paths are short, and many nodes share their folders. Whole
# names also match by their parts, so their weight is that of content. The last four tell what a node belongs to.
WEIGHTS = {
    "content": 1.0,
    "names": 1.0,
    "tags": 2.0,
    "paths": 0.5,
    "sender": 0.5,
    "unit": 0.5,
    "lane": 0.5,
    "type": 0.5,
}
WEIGHED = ", ".join(map(str, WEIGHTS.values()))
# Fields of a patch that change the row of a node.
CHANGES = ("content", "tags", "paths", "wu_id", "session_id", "lane", "type")
DDL = (
    f"CREATE VIRTUAL TABLE {TABLE} USING fts5({', '.join(WEIGHTS)}, tokenize = 'porter ascii')",
    # The session and the time of a node tell which nodes are beside it.
    f"CREATE TABLE {ROWS} (row INTEGER PRIMARY KEY, id TEXT UNIQUE, session TEXT, created INTEGER)",
    f"CREATE INDEX {ROWS}_session ON {ROWS} (session, created, id) WHERE session IS NOT NULL",
    # Words as they are written, with the number of nodes that have them, for `search`.
    f"CREATE TABLE {VOCABULARY} (word TEXT PRIMARY KEY, nodes INTEGER) WITHOUT ROWID",
)


def is_missing(error: sqlite3.Error) -> bool:
    """Return whether an error means that this SQLite has no FTS5."""
    return "no such module" in str(error)


def is_started(db: sqlite3.Connection) -> bool:
    """Return whether there are tables of this version."""
    return _last_indexed(db) is not None


def is_current(db: sqlite3.Connection) -> bool:
    """Return whether the index has the present words of every node."""
    mark = _last_indexed(db)
    if mark is None:
        return False
    newest = last_line(db)
    return newest == mark or (newest - mark < IDLE_LINES and not _lines(db, mark, 1))


def catch_up(db: sqlite3.Connection, progress: Progress | None = None, portion: int = LINES_AT_ONCE) -> None:
    """Index the nodes that are new or changed since the last call.

    It commits in portions, so an interrupted process leaves complete portions; concurrent processes take turns.

    Args:
        progress: Called now and then with the lines read so far, and with all.
        portion: The number of lines in one transaction.

    Raises:
        sqlite3.Error: There is no FTS5 (see `is_missing`), or the file cannot be written.
    """
    done, total, more = 0, 0 if progress is None else _count_left(db), True
    while more:
        db.execute("BEGIN IMMEDIATE")
        try:
            taken = _index_portion(db, portion)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        done += taken
        more = taken == portion
        if progress is not None and taken:
            progress("indexing words", done, total)


def _count_left(db: sqlite3.Connection) -> int:
    """Return the number of lines that are not indexed yet."""
    (count,) = db.execute(
        "SELECT count(*) FROM line WHERE id > ? AND +kind IN ('node', 'patch')", (_last_indexed(db) or 0,)
    ).fetchone()
    return int(count)


def _index_portion(db: sqlite3.Connection, portion: int) -> int:
    """Index a portion of lines and return their number."""
    mark = _last_indexed(db)
    mark = start(db) if mark is None else mark
    newest = last_line(db)
    lines = _lines(db, mark, portion)
    _replace_rows(db, _changed(db, lines))
    mark = lines[-1][0] if len(lines) == portion else newest
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, f"{VERSION} {mark}"))
    return len(lines)


def start(db: sqlite3.Connection, mark: int = 0) -> int:
    """Make the tables empty, for the lines after one, and return its number."""
    for table in (TABLE, ROWS, VOCABULARY):
        db.execute(f"DROP TABLE IF EXISTS main.{table}")
    for statement in DDL:
        db.execute(statement)
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, f"{VERSION} {mark}"))
    return mark


def _last_indexed(db: sqlite3.Connection) -> int | None:
    """Return the number of the last line indexed, or None if there is no index of this version."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    version, _, mark = (row[0] if row else "").partition(" ")
    return int(mark) if version == str(VERSION) else None


def _lines(db: sqlite3.Connection, after: int, most: int) -> list[tuple[int, str]]:
    """Return lines of nodes and patches by number. `+kind` prevents using the index by kind, which would read all."""
    return db.execute(
        "SELECT id, kind FROM line WHERE id > ? AND +kind IN ('node', 'patch') ORDER BY id LIMIT ?",
        (after, most),
    ).fetchall()


def _changed(db: sqlite3.Connection, lines: Sequence[tuple[int, str]]) -> list[str]:
    """Return the ids of the nodes that lines create or change."""
    if not lines:
        return []
    first, last = lines[0][0], lines[-1][0]
    between = "id BETWEEN ? AND ?"
    found = db.execute(
        f"SELECT json_extract(body, '$.id') FROM line WHERE {between} AND +kind = 'node'", (first, last)
    ).fetchall()
    says = " OR ".join(f"json_extract(body, '$.{field}') IS NOT NULL" for field in CHANGES)
    clears = f"EXISTS (SELECT 1 FROM json_each(body, '$.clear') WHERE value IN {CHANGES})"
    found += db.execute(
        f"SELECT value FROM (SELECT body FROM line WHERE {between} AND +kind = 'patch' AND ({says} OR {clears})),"
        " json_each(body, '$.node_ids')",
        (first, last),
    ).fetchall()
    return list(dict.fromkeys(str(id) for (id,) in found))


def _replace_rows(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Replace the rows of nodes."""
    (row,) = db.execute(f"SELECT coalesce(max(row), 0) FROM {ROWS}").fetchone()
    cache = stored_nodes.PatchCache()
    counts = _Counts(db)
    every = ", ".join(WEIGHTS)
    for some in stored_nodes.batches(ids):
        marks = ", ".join("?" * len(some))
        old = dict(db.execute(f"SELECT id, row FROM {ROWS} WHERE id IN ({marks})", some).fetchall())
        for columns in db.execute(f"SELECT {every} FROM {TABLE} WHERE rowid IN ({_listed(old.values())})"):
            counts.add(columns, -1)
        db.executemany(f"DELETE FROM {TABLE} WHERE rowid = ?", [(each,) for each in old.values()])
        rows, words = [], []
        for node in stored_nodes.load(db, some, cache, whole=False):
            if node.id not in old:
                row += 1
                old[node.id] = row
            rows.append((old[node.id], node.id, node.session_id, node.created))
            words.append((old[node.id], *_columns(node)))
            counts.add(words[-1][1:], 1)
        db.executemany(f"INSERT OR REPLACE INTO {ROWS} VALUES (?, ?, ?, ?)", rows)
        values = ", ".join("?" * (1 + len(WEIGHTS)))
        db.executemany(f"INSERT INTO {TABLE} (rowid, {every}) VALUES ({values})", words)
    counts.write()


def _listed(rows: Iterable[int]) -> str:
    return ", ".join(map(str, rows))


class _Counts(Struct):
    """Changes of the numbers of nodes that have a word."""

    _db: sqlite3.Connection
    _changes: dict[str, int] = {}

    def add(self, columns: Sequence[str], change: int) -> None:
        """Add the words of a node's columns, each once."""
        changes = self._changes
        for word in set(" ".join(columns).split(" ")):
            if len(word) >= SIMILAR_LEAST and word.isalpha():
                changes[word] = changes.get(word, 0) + change
        if len(changes) > COUNTED_MAX:
            self.write()

    def write(self) -> None:
        """Write the changes."""
        self._db.executemany(
            f"INSERT INTO {VOCABULARY} VALUES (?, ?) ON CONFLICT (word) DO UPDATE SET nodes = nodes + excluded.nodes",
            sorted(self._changes.items()),
        )
        gone = [(word,) for word, change in self._changes.items() if change < 0]
        self._db.executemany(f"DELETE FROM {VOCABULARY} WHERE word = ? AND nodes <= 0", gone)
        self._changes.clear()


def _columns(node: VersionedNode) -> tuple[str, ...]:
    """Return the words of a node by column, in the order of `WEIGHTS`."""
    columns = (
        (node.content,),
        node.tags,
        node.paths,
        (node.sender_name or node.sender_identity, node.content_by_name or node.content_by),
        (node.wu_id,),
        (node.lane,),
        (node.type,),
    )
    content, *others = [[name for text in texts if text for name in named(text)] for texts in columns]
    whole = dict.fromkeys(name.whole for names in (content, *others) for name in names if name.whole)
    return (_joined(content), " ".join(whole), *map(_joined, others))


def _joined(names: Iterable[NameToken]) -> str:
    return " ".join(part for name in names for part in name.parts)


READ_MAX = 8_192  # characters of a query that are read
WORDS_MAX = 40  # of a query: each costs a pass over the index
BEGINNING_LEAST = 3  # characters: shorter prefixes match almost everything
# English words that are ignored in a query: articles, pronouns, auxiliaries, some prepositions, and what `it's` and `we'll` leave.
STOP = frozenset(
    (  # noqa: SIM905  (a list of a hundred quoted words can't be read)
        "a am an and are as at be been being but by can could d did do does for from had has have he her hers herself him himself his"
        " how i if in into is it its ll m me mine my myself no not of on or our ours re s she should so t than that the their theirs"
        " them themselves then there these they this to us ve was we were what when where which who whom whose why will with would you"
        " your yours"
    ).split()
)

ENDINGS = frozenset(
    ("", "e", "s", "es", "d", "ed", "er", "ers", "ing", "ings", "ion", "ions", "ly", "y", "ies", "ied")
)


class FtsQuery:
    """FTS5 expressions for a query, from the narrowest to the widest; None if one would add nothing.

    Attributes:
        every: All words, and all phrases.
        begun: All words, or words with them as a prefix; and all phrases.
        some: Any of the words, and all phrases.
        words: One expression for each word of `some`.
        parts: The words that may be replaced by similar ones.

    Args:
        similar: Words to replace by others.
    """

    def __init__(self, text: str, similar: Mapping[str, str] | None = None) -> None:
        pieces = text[:READ_MAX].split('"')
        if len(pieces) % 2 == 0:  # the last quotation mark is unmatched
            pieces[-2:] = [pieces[-2] + " " + pieces[-1]]
        phrases = [[part for name in named(piece) for part in name.parts] for piece in pieces[1::2]]
        asked = [phrase[:WORDS_MAX] for phrase in phrases if phrase][:WORDS_MAX]
        must = [_phrase(phrase) for phrase in asked]
        groups = _without_stop(_groups(" ".join(pieces[::2])), bool(must))[:WORDS_MAX]
        self.similar = dict(similar or {})
        self.parts = [part for group in groups if len(group) == 1 for part in group[0].parts]
        if similar:
            groups = [[_replaced(name, similar) for name in group] for group in groups]
        self.words = list(dict.fromkeys(word for group in groups for word in _single(group)))[:WORDS_MAX]
        self._words = {part for phrase in asked for part in phrase}
        self._words.update(
            part for group in groups for name in group for part in (*name.parts, name.whole) if part
        )
        self._beginnings = [group[0].parts[-1] for group in groups if _can_begin(group)]
        self.every = _all([*must, *map(_exact, groups)])
        self.begun = _all([*must, *map(_starts_word, groups)]) if self._beginnings else None
        # `WU-7` is one thing: a node with `wu` or with `7` has no part of it.
        is_number = len(groups) == 1 and len(groups[0]) == 1 and any(map(str.isnumeric, groups[0][0].parts))
        self.some = _all([*must, _any(self.words)]) if len(self.words) > 1 and not is_number else None

    def marks(self, word: str) -> bool:
        """Return whether to highlight a word. Only for display: SQLite's stemmer knows more endings."""
        return (
            word in self._words
            or any(map(word.startswith, self._beginnings))
            or any(_share_stem(word, each) for each in self._words)
        )


def _share_stem(one: str, other: str) -> bool:
    """Return whether two English words differ only in their endings: `parses` and `parsing`."""
    if one[:3] != other[:3]:
        return False
    same = 3
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[same:] in ENDINGS and other[same:] in ENDINGS


def _groups(text: str) -> list[list[NameToken]]:
    """Return the names of a text; adjacent names of a script without spaces form one group."""
    groups: list[list[NameToken]] = []
    for piece in text.split():
        joins = False
        for name in named(piece):
            unspaced = is_unspaced(name)
            if unspaced and joins:
                groups[-1].append(name)
            elif name.parts:
                groups.append([name])
            joins = unspaced
    return groups


def _replaced(name: NameToken, similar: Mapping[str, str]) -> NameToken:
    return NameToken([similar.get(part, part) for part in name.parts])


def _without_stop(groups: Sequence[list[NameToken]], asks_more: bool) -> list[list[NameToken]]:
    kept = [group for group in groups if len(group) > 1 or not STOP.issuperset(group[0].parts)]
    return kept if kept or asks_more else list(groups)


def _exact(group: Sequence[NameToken]) -> str:
    phrase = _phrase([part for name in group for part in name.parts])
    return f'({phrase} OR "{group[0].whole}")' if len(group) == 1 and group[0].whole else phrase


def _starts_word(group: Sequence[NameToken]) -> str:
    if not _can_begin(group):
        return _exact(group)
    return f"({_exact(group)} OR {_phrase(group[0].parts)} *)"


def _can_begin(group: Sequence[NameToken]) -> bool:
    return len(group) == 1 and len(group[0].parts[-1]) >= BEGINNING_LEAST


def _single(group: Sequence[NameToken]) -> list[str]:
    """Return the words of a group one by one; in a script without spaces, pairs of characters."""
    parts = [part for name in group for part in name.parts]
    if len(group) > 1:
        return [_phrase(parts[at : at + 2]) for at in range(len(parts) - 1)]
    return [_phrase([part]) for part in (*parts, group[0].whole) if part]


def _phrase(parts: Sequence[str]) -> str:
    return '"' + " ".join(parts[:WORDS_MAX]) + '"'  # words contain only letters and digits


def _all(expressions: Iterable[str]) -> str | None:
    return " AND ".join(dict.fromkeys(each for each in expressions if each)) or None


def _any(expressions: Sequence[str]) -> str:
    return f"({' OR '.join(expressions)})" if expressions else ""


TIERS = ("all", "begin", "some")
SOME = TIERS.index("some")
BESIDE = (
    0.5,
    0.25,
)  # share of a match that counts for the next node of its session, and for the one after that
SPREAD_MAX = 50  # best matches that count for others
BESIDE_MICROS = 3600 * 1_000_000  # nodes of a session that are further apart are not beside each other
IDF_LEAST = 1e-6  # as in FTS5, for words that most nodes have
_RANKED = f"SELECT rowid AS number, bm25({TABLE}, {WEIGHED}) AS rank FROM {TABLE}"
_RANKED += f" WHERE {TABLE} MATCH ?"
_JOINED = (
    f"SELECT r.row, rank, n.id, n.touched, n.priority, coalesce(a.count, 0), r.session, r.created FROM (%s)"
    f" CROSS JOIN {ROWS} r ON r.row = number CROSS JOIN node n ON n.id = r.id LEFT JOIN access a ON a.id = n.id"
)
_NEXT = f"SELECT row, created FROM {ROWS} WHERE session = ? AND (created, id) %s (?, ?) ORDER BY created %s, id %s LIMIT ?"
_BEFORE, _AFTER = _NEXT % ("<", "DESC", "DESC"), _NEXT % (">", "ASC", "ASC")

SIMILAR_WORDS_MAX = 3  # of a query
TRIED_MAX = 5  # similar words of one word
COMPARED_MAX = 50_000  # indexed words of one first letter
AFTER_ALL = chr(0x10FFFF)


class Match:
    """A node that matches.

    Attributes:
        row: Its row in the full-text index.
        bm25: Of all its matching words; higher is better.
        relevance: BM25 with coverage and neighbours.
        decay, score: The decay score, and the sort key among matches of a tier; see `weigh`.
        priority, count: Its priority and the number of its accesses, for decay.
        session, created: Its session, and the time of its creation.
        question: The query, perhaps with similar words, that it matches.
    """

    question: FtsQuery

    def __init__(
        self,
        tier: int,
        row: int,
        rank: float,
        id: str,
        touched: int,
        priority: str | None,
        count: int,
        session: str | None,
        created: int,
    ) -> None:
        self.tier = tier
        self.row = row
        self.bm25 = self.relevance = -rank
        self.id = id
        self.touched = touched
        self.priority = priority
        self.count = count
        self.session = session
        self.created = created
        self.weigh(1.0, 0.0)

    def weigh(self, decay: float, weight: float) -> None:
        """Set the decay score and the score; `weight` is the share of decay in it."""
        self.decay = decay
        self.score = self.relevance * (1 - weight + weight * decay)


def match_order(match: Match) -> tuple[object, ...]:
    """Return the sort key of a match: the best first."""
    return (match.tier, -match.score, -match.touched, match.id)


def find_matches(
    db: sqlite3.Connection, question: FtsQuery, wanted: Filter, limit: int, most: int
) -> list[Match]:
    """Return the most relevant matches; ask for a wider expression only if a narrower one finds too few.

    Args:
        limit: The number of matches that is enough.
        most: The maximum number of matches of each expression.
    """
    found: dict[int, Match] = {}
    reached = 0
    for tier, expression in enumerate((question.every, question.begun, question.some)):
        if expression is not None and len(found) < limit:
            reached = tier
            for row in _best_rows(db, expression, wanted, most):
                found.setdefault(row[0], Match(tier, *row))
    best = sorted(found.values(), key=match_order)[:SPREAD_MAX]
    beside = {match.row: _beside(db, match) for match in best if match.session is not None}
    if reached == SOME and question.some is not None:
        further = {row for rows in beside.values() for row, _ in rows} - found.keys()
        for row in _among(db, question.some, wanted, further):
            found[row[0]] = Match(SOME, *row)
        _apply_coverage(db, question.words, [match for match in found.values() if match.tier == SOME])
    _spread(found, beside)
    return list(found.values())


def has_match(db: sqlite3.Connection, word: str, wanted: Filter) -> bool:
    """Return whether a node that passes the filter has a word."""
    rows = f"SELECT rowid AS number, NULL AS rank FROM {TABLE} WHERE {TABLE} MATCH ?"
    asked = f"{_JOINED % rows} WHERE {wanted.where} LIMIT 1"
    return db.execute(asked, (f'"{word}"', *wanted.values)).fetchone() is not None


def _best_rows(db: sqlite3.Connection, expression: str, wanted: Filter, most: int) -> list[tuple[Any, ...]]:
    """Return the most relevant nodes; among equally relevant ones those with the lowest ids.

    Joining every match with other tables costs more than ranking it, so only the best are joined first. Every match
    is joined only if filters and hidden nodes remove too many of these, or if very many are equally relevant.
    """
    if not wanted.given:
        best = db.execute(f"{_RANKED} ORDER BY rank LIMIT ?", (expression, 2 * most)).fetchall()
        last = best[most - 1][1] if len(best) > most else None
        if last is None or len(best) < 2 * most or best[-1][1] > last:
            taken = best if last is None else [each for each in best if each[1] <= last]
            rows = _with_ranks(db, taken, wanted)
            if last is None or len(rows) > most // 2:
                rows.sort(key=lambda row: (row[1], row[2]))
                return rows[:most]
    every = f"{_JOINED % _RANKED} WHERE {wanted.where} ORDER BY rank, n.id LIMIT ?"
    return db.execute(every, (expression, *wanted.values, most)).fetchall()


def _with_ranks(
    db: sqlite3.Connection, ranked: Iterable[tuple[int, float]], wanted: Filter
) -> list[tuple[Any, ...]]:
    """Return the rows of nodes with these ranks that pass the filter."""
    ranks = dict(ranked)
    rows = f"SELECT value AS number, NULL AS rank FROM json_each('[{_listed(ranks)}]')"
    found = db.execute(f"{_JOINED % rows} WHERE {wanted.where}", wanted.values)
    return [(row, ranks[row], *rest) for row, _, *rest in found]


def _among(
    db: sqlite3.Connection, expression: str, wanted: Filter, rows: Collection[int]
) -> list[tuple[Any, ...]]:
    """Return those of these rows that match. `+rowid`: one pass over all matches is faster than a query for each row."""
    if not rows:
        return []
    among = f"{_RANKED} AND +rowid IN ({_listed(rows)})"
    return db.execute(f"{_JOINED % among} WHERE {wanted.where}", (expression, *wanted.values)).fetchall()


def _beside(db: sqlite3.Connection, match: Match) -> list[tuple[int, float]]:
    """Return the rows beside a match, each with the share of the match that counts for it."""
    found = []
    for statement in (_BEFORE, _AFTER):
        rows = db.execute(statement, (match.session, match.created, match.id, len(BESIDE)))
        for share, (row, created) in zip(BESIDE, rows, strict=False):
            if abs(created - match.created) <= BESIDE_MICROS:
                found.append((row, share))
    return found


def _apply_coverage(db: sqlite3.Connection, words: Sequence[str], matches: Sequence[Match]) -> None:
    """Multiply the relevance of matches by the share of the words that they have, weighted by the words' rarity."""
    (count,) = db.execute(f"SELECT count(*) FROM {ROWS}").fetchone()
    total, covered = 0.0, dict.fromkeys((match.row for match in matches), 0.0)
    having = f"group_concat(CASE WHEN rowid IN ({_listed(covered)}) THEN rowid END)"
    for word in words:
        often, rows = db.execute(
            f"SELECT count(*), {having} FROM {TABLE} WHERE {TABLE} MATCH ?", (word,)
        ).fetchone()
        idf = max(IDF_LEAST, log((count - often + 0.5) / (often + 0.5)))
        total += idf
        for row in rows.split(",") if rows else ():
            covered[int(row)] += idf
    for match in matches:
        match.relevance *= covered[match.row] / total if total else 1.0


def _spread(found: dict[int, Match], beside: dict[int, list[tuple[int, float]]]) -> None:
    """Add to the relevance of each match a share of those beside it.

    Only matches get a share: where neighbours are unrelated, others would push out better matches.
    """
    own = {row: match.relevance for row, match in found.items()}
    for row in sorted(
        beside, key=lambda row: found[row].id
    ):  # the order of additions changes the last digits
        for other, share in beside[row]:
            if other in found:
                found[other].relevance += share * own[row]


def find_similar(
    db: sqlite3.Connection, words: Iterable[str], is_shown: Callable[[str], bool]
) -> dict[str, str]:
    """Return a similar indexed word for each word that matches nothing, not even as a prefix.

    Args:
        is_shown: Tells whether a word matches a node that the search may show. Deleted nodes are indexed, too.
    """
    candidates = (word for word in dict.fromkeys(words) if len(word) >= SIMILAR_LEAST and word.isalpha())
    unknown = [word for word in candidates if not _is_known(db, word)]
    tried = ((word, filter(is_shown, _most_frequent(db, word))) for word in unknown[:SIMILAR_WORDS_MAX])
    found = ((word, next(similar, None)) for word, similar in tried)
    return {word: similar for word, similar in found if similar is not None}


def _is_known(db: sqlite3.Connection, word: str) -> bool:
    known = f"SELECT 1 FROM {TABLE} WHERE {TABLE} MATCH ? LIMIT 1"
    return any(db.execute(known, (each,)).fetchone() for each in (f'"{word}"', f'"{word}" *'))


def _most_frequent(db: sqlite3.Connection, word: str) -> list[str]:
    """Return the similar words that most nodes have, up to `TRIED_MAX`; equally frequent ones in alphabetical order."""
    from rapidfuzz.distance import OSA

    found: list[tuple[int, str]] = []
    for start in dict.fromkeys(word[:2]):
        rows = db.execute(
            f"SELECT word, nodes FROM (SELECT * FROM {VOCABULARY} WHERE word >= ? AND word < ? LIMIT ?)"
            " WHERE length(word) BETWEEN ? AND ?",
            (start, start + AFTER_ALL, COMPARED_MAX, len(word) - 1, len(word) + 1),
        )
        found += [(-nodes, each) for each, nodes in rows if OSA.distance(word, each, score_cutoff=1) <= 1]
    return [each for _, each in sorted(found)[:TRIED_MAX]]
