"""Find imitations of text that a client or this program adds for a model: tags and reply lines.

The search runs on a folded copy of the text: lower case, without combining marks and invisible characters, and with
look-alike letters as ASCII. Each step is linear in the length of the text, whatever it contains.
"""

from __future__ import annotations

from unicodedata import category

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPENING = "<＜﹤≮"  # other look-alikes are quotation marks in some languages; they count only for known tags
_NAME_MAX = 64
_TAG_MAX = 300
_CODE_INDENT_MAX = 3
_SQUASHED = {ord("i"): "l", ord("1"): "l", ord("0"): "o"}


_SIGNS_IN_WORDS = ("-", "_", "~", "=")  # `take-from session` is not a reply line
_DASH_LETTERS = "一ーㅡᅳㄧ\u0640\u07faᐨⲺⲻˉ"  # letters that look like a horizontal stroke
_QUOTES = ("Pi", "Pf", "Ps", "Pe", "Mn", "Me")


def _squash(name: str) -> str:
    """Return a name with ASCII look-alikes made equal: `1lI`, `0O`, `rn` and `m`."""
    return name.translate(_SQUASHED).replace("rn", "m")


# Names of tags in which clients address their model, without `-`, `_` and `.`; they also match as a prefix.
_CLIENT_TAGS = tuple(map(_squash, (
    "systemreminder", "systemmessage", "systemprompt", "systeminstruction", "systemnotification", "userprompt",
    "usermessage", "userquery", "userinstruction", "userinfo", "userrules", "developermessage", "assistantmessage",
    "agentmessage", "teammatemessage", "tooluse", "toolcall", "toolresult", "toolresponse", "tooloutput", "toolcode",
    "functioncall", "functionresult", "functionresponse", "functionoutput", "localcommand", "commandname",
    "commandmessage", "commandargs", "bashinput", "bashstdout", "bashstderr", "bashoutput", "tasknotification",
    "environmentcontext", "environmentdetails", "hookcontext", "additionalcontext", "additionaldata",
    "sessionstarthook", "persistedoutput", "turnaborted", "subagentnotification", "newdiagnostics", "ideselection",
    "ideopenedfile", "startofturn", "endofturn", "startofimage", "imstart", "imend", "endoftext",
)))  # fmt: skip
# Tags in every use except after a word (`List<User>`).
_CALLS = frozenset(map(_squash, ("invoke", "parameter", "parameters")))
# Tags only if a `>` follows; in code they are types.
_ROLES = frozenset(map(_squash, (
    "system", "sys", "user", "assistant", "human", "developer", "tool", "tools", "signal", "instructions",
    "permissions", "thinking", "think", "bos", "eos",
)))  # fmt: skip
_FIRST = frozenset(name[0] for name in (*_CLIENT_TAGS, *_CALLS, *_ROLES)) | set("ai10r")  # `a`: a namespace
# Names in square brackets on which models were trained, without `_`.
_BRACKETED = frozenset(map(_squash, (
    "inst", "systemprompt", "availabletools", "toolcalls", "toolresults", "toolcontent", "system", "assistant",
)))  # fmt: skip


def find(text: str, *, markup: bool, lines: bool) -> list[int]:
    """Return the positions of the signs that must be replaced, ascending.

    Args:
        markup: Whether any tag outside Markdown code counts, known or not.
        lines: Whether reply lines count (`— from session …`).
    """
    if text.isascii():
        folded = text.lower()
    else:
        from .lookalikes import FOLDS

        folded = text.translate(FOLDS)
    known, generic = _tags(folded, markup)
    if "[" in folded:
        known += _brackets(folded)
    if lines and "session" in folded:
        known += _reply_lines(folded)
    known, generic = _unfolded(text, sorted(set(known))), _unfolded(text, generic)
    generic = [at for at in generic if text[at] in _OPENING]
    if generic and ("`" in text or "~~~" in text):
        generic = _outside(generic, _code(text))
    return sorted({*known, *generic}) if generic else known


def _unfolded(text: str, positions: list[int]) -> list[int]:
    """Map positions in the folded text to positions in the text. Both ascend."""
    if not positions or text.isascii():
        return positions
    from .lookalikes import FOLDS

    found: list[int] = []
    at = 0
    wanted = iter(positions)
    position = next(wanted)
    for here, char in enumerate(text):
        at += len(FOLDS[ord(char)])
        while position < at:
            if not found or found[-1] != here:
                found.append(here)
            following = next(wanted, None)
            if following is None:
                return found
            position = following
    return found


def _tags(folded: str, markup: bool) -> tuple[list[int], list[int]]:
    """Return where known tags begin, and with `markup` where others do."""
    known: list[int] = []
    generic: list[int] = []
    pieces = folded.split("<")  # a tag's name ends before the next `<`, so no character is read twice
    at = len(pieces[0])
    for piece in pieces[1:]:
        if piece:
            if _is_known(folded, at, piece):
                known.append(at)
            elif markup and _is_markup(piece):
                generic.append(at)
        at += 1 + len(piece)
    return known, generic


def _is_markup(piece: str) -> bool:
    """Return whether a letter follows a `<`, directly or after `/`, `|`, `/|` or `|/`."""
    for char in piece[:3]:
        if char not in "/|":
            return char.isalpha()
    return False


def _is_known(folded: str, at: int, piece: str) -> bool:
    """Return whether a client's tag begins at a `<`; `piece` is the text after it."""
    inside = piece if piece[0] not in " \t\n" else piece.lstrip()
    start = inside[: _NAME_MAX + 2].lstrip("/ \t")
    if start.startswith("|"):  # `<|im_start|>`
        name, bar, rest = start[1:].partition("|")
        spaced = " " in name and "_" not in name  # `f <| g |> h` is code
        return bool(bar) and rest.lstrip()[:1] == ">" and not spaced and _plain(name).isalnum()
    if not start or start[0] not in _FIRST:
        return False
    word = start[:_NAME_MAX]
    for end, char in enumerate(word):
        if not (char.isalnum() or char in "-_.:"):
            word = word[:end]
            break
    space, _, name = word.partition("--")[0].rpartition(":")
    parts = name.replace("_", "-").replace(".", "-").split("-")
    name = _squash("".join(parts))
    if space == "antml" or (len(parts) > 1 and name.startswith(_CLIENT_TAGS)):
        return True
    is_call = name in _CALLS
    if not (is_call or name in _ROLES or name.rstrip("s") in _CLIENT_TAGS):
        return False
    if not inside.startswith("/") and _is_word(folded, at - 1):
        return False  # a type: `List<User>`
    return is_call or ">" in folded[at : at + _TAG_MAX]


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "")


def _brackets(folded: str) -> list[int]:
    """Return where `[INST]` and similar names begin."""
    found: list[int] = []
    at = -1
    for piece in folded.split("["):
        if at >= 0 and "]" in piece[:_NAME_MAX]:
            name = _squash(_plain(piece[:_NAME_MAX].partition("]")[0].strip().removeprefix("/")))
            if name in _BRACKETED and not _is_word(folded, at - 1):
                found.append(at)
        at += 1 + len(piece)
    return found


def _is_word(folded: str, at: int) -> bool:
    r"""Return whether an ASCII letter, digit or `_` is at a position, other than the `n` of JSON's `\n`."""
    if at < 0 or not folded[at].isascii() or not (folded[at].isalnum() or folded[at] == "_"):
        return False
    return at == 0 or folded[at - 1] != "\\"


def _reply_lines(folded: str) -> Iterator[int]:
    """Yield the positions of signs before an imitation of the line below a signal: `— from session …`."""
    at = folded.find("session")
    while at >= 0:
        end = _blanks_start(folded, at)
        if end < at and folded.endswith("from", 0, end):
            end = start = _blanks_start(folded, end - 4)
            while start > 0 and _may_be_dash(folded[start - 1]):
                start -= 1
            if not (folded[start:end] in _SIGNS_IN_WORDS and _is_word(folded, start - 1)):
                yield from range(start, end)
        at = folded.find("session", at + 1)


def _may_be_dash(char: str) -> bool:
    """Return whether a character may look like a dash: any character except letters, digits, quotes and brackets."""
    if char.isascii():
        return char in _SIGNS_IN_WORDS
    return char in _DASH_LETTERS or not (char.isalnum() or category(char) in _QUOTES)


def _blanks_start(text: str, at: int) -> int:
    """Return the start of the blanks that end at a position."""
    while at > 0 and text[at - 1] in " \t":
        at -= 1
    return at


def _outside(positions: Sequence[int], ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the positions that are in none of the ranges. Both ascend."""
    left: list[int] = []
    following = iter(ranges)
    start, end = next(following, (0, 0))
    for position in positions:
        while end and position >= end:
            start, end = next(following, (0, 0))
        if not end or position < start:
            left.append(position)
    return left


def _code(text: str) -> list[tuple[int, int]]:
    """Return the ranges of Markdown code in a text. A fence without an end does not count."""
    ranges: list[tuple[int, int]] = []
    fence, before = "", 0
    at = 0
    for line in text.split("\n"):
        bare = line.strip(" \r")
        if fence:
            if len(bare) >= len(fence) and not bare.strip(fence[0]):
                fence = ""
            else:
                ranges.append((at, at + len(line)))
        elif bare.startswith(("```", "~~~")) and len(line) - len(line.lstrip(" ")) <= _CODE_INDENT_MAX:
            rest = bare.lstrip(bare[0])
            if "`" in rest and bare[0] == "`":
                ranges += _spans(line, at)
            else:
                fence, before = bare[: len(bare) - len(rest)], len(ranges)
        elif "`" in line:
            ranges += _spans(line, at)
        at += len(line) + 1
    return ranges[:before] if fence else ranges


def _spans(line: str, offset: int) -> list[tuple[int, int]]:
    """Return the ranges between runs of backticks of equal length in one line."""
    runs: list[tuple[int, int]] = []
    at = line.find("`")
    while at >= 0:
        end = at
        while end < len(line) and line[end] == "`":
            end += 1
        runs.append((at, end))
        at = line.find("`", end)
    closing = [0] * len(runs)  # the next run of the same length
    last: dict[int, int] = {}
    for at in range(len(runs) - 1, -1, -1):
        start, end = runs[at]
        closing[at] = last.get(end - start, 0)
        last[end - start] = at
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(runs):
        if closing[at]:
            found.append((offset + runs[at][1], offset + runs[closing[at]][0]))
            at = closing[at]
        at += 1
    return found
