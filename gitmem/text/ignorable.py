"""Code points that are escaped when shown. Written by `tools/compile_ignorable.py`: don't edit.

`IGNORABLE` is Unicode's Default_Ignorable_Code_Point. `ALSO_UNSAFE` has control characters, line and paragraph
separators, interlinear annotations, and Braille without a dot; `UNSAFE` is both. Ranges are inclusive and ascending.
"""

from __future__ import annotations

IGNORABLE: tuple[tuple[int, int], ...] = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
ALSO_UNSAFE: tuple[tuple[int, int], ...] = (
    (0x0000, 0x001F),
    (0x007F, 0x009F),
    (0x2028, 0x2029),
    (0x2800, 0x2800),
    (0xFFF9, 0xFFFB),
)
UNSAFE = tuple(sorted((*IGNORABLE, *ALSO_UNSAFE)))
