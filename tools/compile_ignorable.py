"""Write the ranges of invisible code points as literals: `gitmem/text/ignorable.py`.

For developers, after an update of Unicode: `python tools/compile_ignorable.py`. `Default_Ignorable_Code_Point` is
derived as the header of Unicode's DerivedCoreProperties.txt says; Python's `unicodedata` has the categories, and
the listed properties below are those of PropList.txt. A test compares the checked-in file with a fresh one.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "gitmem" / "text" / "ignorable.py"

# PropList.txt, Unicode 14.0 to 17.0.
OTHER_DEFAULT_IGNORABLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x2065, 0x2065), (0x3164, 0x3164), (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8), (0xE0000, 0xE0000), (0xE0002, 0xE001F), (0xE0080, 0xE00FF), (0xE01F0, 0xE0FFF),
)  # fmt: skip
VARIATION_SELECTOR = ((0x180B, 0x180D), (0x180F, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
WHITE_SPACE = (
    (0x09, 0x0D), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
    (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
INTERLINEAR_ANNOTATION = ((0xFFF9, 0xFFFB),)
EGYPTIAN_FORMAT = ((0x13430, 0x13440),)
PREPENDED_CONCATENATION_MARK = (
    (0x0600, 0x0605), (0x06DD, 0x06DD), (0x070F, 0x070F), (0x0890, 0x0891), (0x08E2, 0x08E2), (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
)  # fmt: skip

HEADER = '''"""Code points that are escaped when shown. Written by `tools/compile_ignorable.py`: don't edit.

`IGNORABLE` is Unicode's Default_Ignorable_Code_Point. `ALSO_UNSAFE` has control characters, line and paragraph
separators, interlinear annotations, and Braille without a dot; `UNSAFE` is both. Ranges are inclusive and ascending.
"""

from __future__ import annotations

'''


def expand(ranges: tuple[tuple[int, int], ...]) -> set[int]:
    """Return every code point of inclusive ranges."""
    return {code for first, last in ranges for code in range(first, last + 1)}


@functools.cache
def ignorable() -> set[int]:
    """Return Default_Ignorable_Code_Point by its definition."""
    formats = {code for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf"}
    without = WHITE_SPACE + INTERLINEAR_ANNOTATION + EGYPTIAN_FORMAT + PREPENDED_CONCATENATION_MARK
    return (expand(OTHER_DEFAULT_IGNORABLE) | formats | expand(VARIATION_SELECTOR)) - expand(without)


def also_unsafe() -> set[int]:
    """Return the code points besides the ignorable ones that are escaped when shown."""
    controls = {code for code in range(0x100) if unicodedata.category(chr(code)) == "Cc"}
    return (controls | expand(INTERLINEAR_ANNOTATION) | {0x2028, 0x2029, 0x2800}) - ignorable()


def compress(codes: set[int]) -> list[tuple[int, int]]:
    """Return the inclusive ranges of a set of code points, ascending."""
    ranges: list[tuple[int, int]] = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return ranges


def render() -> str:
    """Return the source of the generated module."""
    parts = [HEADER]
    for name, codes in (("IGNORABLE", ignorable()), ("ALSO_UNSAFE", also_unsafe())):
        rows = "".join(f"    (0x{first:04X}, 0x{last:04X}),\n" for first, last in compress(codes))
        parts.append(f"{name}: tuple[tuple[int, int], ...] = (\n{rows})\n")
    parts.append("UNSAFE = tuple(sorted((*IGNORABLE, *ALSO_UNSAFE)))\n")
    return "".join(parts)


def main() -> int:
    """Write the module."""
    TARGET.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
