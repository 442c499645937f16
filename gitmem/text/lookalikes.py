"""Tables for `str.translate` that fold characters, only for comparisons.

`COMPATIBLE` has compatibility forms without invisible characters and combining marks. `FOLDS` folds characters that look
like an ASCII character to it: it applies Unicode's compatibility forms (NFKD) without combining marks, then a small table of letters of other
scripts. It is meant for names of tags, not for words: letters without a look-alike are kept, and folding loses
information.
"""

from __future__ import annotations

from unicodedata import category, normalize

from .ignorable import IGNORABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_CACHE_MAX = 65_536  # code points
_PLANE_2, _PLANE_14 = 0x20000, 0xE0000
_MARKS = ("Mn", "Me")
# An ASCII character, and letters that look like it in upper or lower case.
_PAIRS = (
    ("a", "аАαΑɑᴀⲁᎪꓮ"), ("b", "вВβΒьЬʙᏏᏴꓐⲂ"), ("c", "сСϲϹᴄᏟꓚⲥ"), ("d", "ԁԀᴅᎠꓓᏧ"), ("e", "еЕεΕɛєЄᴇᎬꓰⲉ"), ("f", "ϝꓝғ"),
    ("g", "ɡɢցԍᏀꓖ"), ("h", "нНһҺΗʜհᎻꓧⲏᏂ"), ("i", "іІιΙıɪɩӏӀᎥꓲⲓ"), ("j", "јЈϳʝᴊյᎫꓙ"), ("k", "кКκΚᴋᏦꓗⲕ"),
    ("l", "ʟլᏞꓡǀ"), ("m", "мМΜᴍᎷꓟⲙ"), ("n", "ηпΝɴոռꓠⲛ"), ("o", "оОοΟσоօᴏⲟꓳഠ௦०০၀"), ("p", "рРρΡᴘᏢꓑⲣ"),
    ("q", "ԛզգ"), ("r", "гꓣʀᎡᏒᴦⲅ"), ("s", "ѕЅꜱՏᏚꓢƽ"), ("t", "тТτΤᴛᎢꓔⲧ"), ("u", "υսᴜꓴʋ"), ("v", "νѵѴᴠᏙꓦ"),
    ("w", "ԝωѡᴡᏔᎳꓪա"), ("x", "хХχΧꓫⲭ"), ("y", "уУγΥүҮʏᎽꓬ"), ("z", "ᴢΖᏃꓜ"),
    ("<", "˂ᐸᚲ❮〈〈⟨𝈶"), (">", "˃ᐳ❯〉〉⟩›"), ("|", "│┃❘∣"), ("/", "⁄∕╱⟋⧸"), ("_", "▁＿ˍ"),
    ("[", "⁅⟦〚"), ("]", "⁆⟧〛"),
    ("-", "‐‑"), ("—", "‒–—―−─━⸺⸻﹘﹣－¯‾‗﹉﹊﹋﹌￣"),
)  # fmt: skip
_LETTERS = {ord(char): plain for plain, chars in _PAIRS for char in chars}


class _Folds(dict[int, str]):
    """A table for `str.translate` that a function fills on demand."""

    def __init__(self, fold: Callable[[int], str]) -> None:
        super().__init__()
        self._fold = fold

    def __missing__(self, code: int) -> str:
        value = self._fold(code)
        if len(self) < _CACHE_MAX:
            self[code] = value
        return value


def _fold(code: int) -> str:
    char = chr(code)
    if code < 0x80:
        return char.lower()
    if _PLANE_2 <= code < _PLANE_14:
        return char  # ideographs
    if any(first <= code <= last for first, last in IGNORABLE):
        return ""
    if code in _LETTERS:
        return _LETTERS[code]
    folded = "".join(
        _LETTERS.get(ord(part), part) for part in normalize("NFKD", char) if category(part) not in _MARKS
    )
    if "`" in folded or "\n" in folded:
        return char  # only a real backtick or newline delimits code
    return folded.lower()


def _compatible(code: int) -> str:
    char = chr(code)
    if code < 0x80 or _PLANE_2 <= code < _PLANE_14:
        return char
    if any(first <= code <= last for first, last in IGNORABLE) or category(char) in _MARKS:
        return ""
    return normalize("NFKC", char)


COMPATIBLE = _Folds(_compatible)
FOLDS = _Folds(_fold)
