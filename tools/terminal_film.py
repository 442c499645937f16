"""Screens of terminals as one moving SVG: no script, no font and nothing else that is loaded."""

from __future__ import annotations

import re
import unicodedata
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CELL, LINE, SIZE = 7.2, 17, 12  # pixels: the width and height of a character's place, and the font
GAP, BAR, FOOT = 12, 34, 60  # around the screens, above and below them
FORE, BACK, PAPER, EDGE, SOFT = "#e6edf3", "#0d1117", "#161b22", "#30363d", "#9da7b3"
BASIC = ("#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4")
BRIGHT = ("#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc")
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
ALIKE = str.maketrans("⎿⏸", "└‖")  # for those that few fonts have
QUARTERS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"  # the place of a character has a bit for each quarter
SGR = re.compile(r"\x1b\[([\d;:]*)m")


class Moment(NamedTuple):
    """What is seen for a while: the screens, and the sentence below them."""

    screens: tuple[str, ...]
    caption: str
    seconds: float


class Style(NamedTuple):
    """How a character looks."""

    fore: str = ""
    back: str = ""
    bold: bool = False
    faint: bool = False
    italic: bool = False
    inverse: bool = False


def film(
    moments: Sequence[Moment],
    titles: Sequence[tuple[str, str]],
    columns: int,
    rows: int,
    name: str,
    story: str,
    note: str,
) -> str:
    """Return the SVG, which begins anew at its end.

    Args:
        moments: What is seen, in the order of time. Who wants no motion sees the last one.
        titles: Of each screen, in bold and beside it.
        columns: Of each screen.
        rows: Of each screen.
        name: For screen readers, as `story`.
        story: What happens in it.
        note: What always stands at the foot.
    """
    total = sum(each.seconds for each in moments)
    width, height = round(columns * CELL) + 2 * GAP, rows * LINE + GAP
    whole = (width + GAP) * len(titles) + GAP, BAR + height + FOOT
    lines: dict[str, int] = {}
    strips: list[str] = []
    rules: list[str] = []
    for place, (title, beside) in enumerate(titles):
        x = GAP + place * (width + GAP)
        strips.append(
            f'<text class="s" x="{x + 2}" y="23"><tspan class="b">{escape(title)}</tspan><tspan class="n" dx="8">{escape(beside)}</tspan></text>'
            f'<rect x="{x}" y="{BAR}" width="{width}" height="{height}" rx="6" fill="{BACK}" stroke="{EDGE}"/>'
            f'<svg x="{x + GAP}" y="{BAR + GAP / 2:g}" width="{width - 2 * GAP}" height="{rows * LINE}"><g class="f{place}">'
        )
        shown = [each.screens[place] for each in moments]
        strips += [_screen(text, number * rows, columns, lines) for number, text in enumerate(_runs(shown))]
        strips.append("</g></svg>")
        rules.append(_motion(f"f{place}", shown, moments, total, rows * LINE))
    captions = [each.caption for each in moments]
    strips.append(f'<svg y="{BAR + height}" width="{whole[0]}" height="{FOOT}"><g class="c">')
    strips += [
        f'<text class="s" x="{whole[0] / 2:g}" y="{number * FOOT + 26}" text-anchor="middle">{escape(text)}</text>'
        for number, text in enumerate(_runs(captions))
    ]
    strips.append(
        f'</g></svg><text class="s n" x="{whole[0] / 2:g}" y="{whole[1] - 12}" text-anchor="middle">{escape(note)}</text>'
    )
    rules.append(_motion("c", captions, moments, total, FOOT))
    defined = "".join(f'<g id="l{number}">{line}</g>' for line, number in lines.items())
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole[0]} {whole[1]}" role="img" aria-labelledby="title desc">
<title id="title">{escape(name)}</title>
<desc id="desc">{escape(story)}</desc>
<style>
text {{ font: {SIZE}px {MONO}; fill: {FORE}; white-space: pre }}
.s {{ font: 15px {SANS} }}
.b, .s .b {{ font-weight: 700 }}
.n {{ fill: {SOFT}; font-size: 13px }}
.i {{ font-style: italic }}
{chr(10).join(rules)}
@media (prefers-reduced-motion: reduce) {{ g {{ animation: none !important }} }}
</style>
<defs>{defined}</defs>
<rect x=".5" y=".5" width="{whole[0] - 1}" height="{whole[1] - 1}" rx="10" fill="{PAPER}" stroke="{EDGE}"/>
{chr(10).join(strips)}
</svg>
"""


def _runs(values: Sequence[str]) -> Iterator[str]:
    """Each value that differs from the one before it."""
    return (value for place, value in enumerate(values) if not place or value != values[place - 1])


def _motion(name: str, values: Sequence[str], moments: Sequence[Moment], total: float, step: int) -> str:
    """The rule that shows value after value of a strip, and without motion its last one."""
    stops: list[str] = []
    seconds, number = 0.0, -1
    for place, moment in enumerate(moments):
        if not place or values[place] != values[place - 1]:
            number += 1
            stops.append(f"{100 * seconds / total:.2f}%{{transform:translateY({-number * step}px)}}")
        seconds += moment.seconds
    last = f"transform:translateY({-number * step}px)"
    return f"@keyframes {name} {{{''.join(stops)}100%{{{last}}}}}\n.{name} {{ {last}; animation: {name} {total:.1f}s step-end infinite }}"


def _screen(text: str, row: int, columns: int, lines: dict[str, int]) -> str:
    """One screen, made of lines that are drawn once and used in many screens."""
    used: list[str] = []
    style = Style()
    for place, line in enumerate(text.split("\n")):
        runs, style = _styled(line, style, columns)
        if drawn := "".join(_drawn(*each) for each in runs):
            number = lines.setdefault(drawn, len(lines))
            used.append(f'<use href="#l{number}" y="{(row + place) * LINE}"/>')
    return "".join(used)


def _styled(line: str, style: Style, columns: int) -> tuple[list[tuple[int, str, Style]], Style]:
    """The runs of one style in a line, with the column of each, and the style at its end."""
    runs: list[tuple[int, str, Style]] = []
    column = 0
    for place, part in enumerate(SGR.split(line.translate(ALIKE))):
        if place % 2:
            style = _changed(style, part)
        elif part:
            runs.append((column, part, style))
            column += _columns(part)
    if style.back and runs:  # the rest of a line has the colour of its end
        runs.append((column, " " * (columns - column), style))
    return runs, style


def _columns(text: str) -> int:
    return sum(
        1 + (unicodedata.east_asian_width(each) in "WF") for each in text if not unicodedata.combining(each)
    )


def _changed(style: Style, codes: str) -> Style:  # noqa: C901  (a branch for each code)
    """The style after one escape sequence."""
    left = [int(each or 0) for each in codes.replace(":", ";").split(";")]
    while left:
        match left.pop(0):
            case 0:
                style = Style()
            case 1:
                style = style._replace(bold=True)
            case 2:
                style = style._replace(faint=True)
            case 3:
                style = style._replace(italic=True)
            case 7:
                style = style._replace(inverse=True)
            case 22:
                style = style._replace(bold=False, faint=False)
            case 23:
                style = style._replace(italic=False)
            case 27:
                style = style._replace(inverse=False)
            case 38 | 48 as code:
                if left.pop(0) == 2:
                    colour = "#{:02x}{:02x}{:02x}".format(*left[:3])
                    del left[:3]
                else:
                    colour = _colour(left.pop(0))
                style = style._replace(fore=colour) if code == 38 else style._replace(back=colour)
            case 39:
                style = style._replace(fore="")
            case 49:
                style = style._replace(back="")
            case code if 30 <= code < 38:
                style = style._replace(fore=BASIC[code - 30])
            case code if 40 <= code < 48:
                style = style._replace(back=BASIC[code - 40])
            case code if 90 <= code < 98:
                style = style._replace(fore=BRIGHT[code - 90])
    return style


def _colour(number: int) -> str:
    """One of the 256 colours that terminals have."""
    if number < 16:
        return (*BASIC, *BRIGHT)[number]
    if number < 232:
        levels = (0, 95, 135, 175, 215, 255)
        return "#" + "".join(f"{levels[(number - 16) // each % 6]:02x}" for each in (36, 6, 1))
    return "#" + f"{8 + 10 * (number - 232):02x}" * 3


def _drawn(column: int, text: str, style: Style) -> str:
    """A run of characters: its background, then blocks and rules as shapes, then words at their columns."""
    fore, back = style.fore or FORE, style.back
    if style.inverse:
        fore, back = back or BACK, fore
    width = _columns(text)
    drawn = _box(column, 0, width, 1, back) if back and back != BACK else ""
    for found in re.finditer("─+|[▘-▟█▀▄▌▐]+|[^─▘-▟█▀▄▌▐ \xa0]+(?: [^─▘-▟█▀▄▌▐ \xa0]+)*", text):
        at, word = column + _columns(text[: found.start()]), found[0]
        if word[0] == "─":
            drawn += _box(at, 0.47, len(word), 0.06, fore)
        elif word[0] in QUARTERS:
            drawn += "".join(_quarters(at + place, each, fore) for place, each in enumerate(word))
        else:
            classes = " ".join(name for name, holds in (("b", style.bold), ("i", style.italic)) if holds)
            drawn += (
                f'<text x="{at * CELL:g}" y="{LINE - 5}" textLength="{_columns(word) * CELL:g}" lengthAdjust="spacingAndGlyphs"'
                + (f' class="{classes}"' if classes else "")
                + (f' style="fill:{fore}"' if fore != FORE else "")
                + (' opacity=".65"' if style.faint else "")
                + f">{escape(word, quote=False)}</text>"
            )
    return drawn


def _quarters(column: int, block: str, fore: str) -> str:
    bits = QUARTERS.index(block)
    return "".join(
        _box(column + place % 2 / 2, place // 2 / 2, 0.5, 0.5, fore)
        for place in range(4)
        if bits >> place & 1
    )


def _box(column: float, row: float, columns: float, rows: float, fill: str) -> str:
    """A rectangle in a line, in the units of characters."""
    place = f'x="{column * CELL:g}" y="{row * LINE:g}" width="{columns * CELL:g}" height="{rows * LINE:g}"'
    return f'<rect {place} fill="{fill}" shape-rendering="crispEdges"/>'
