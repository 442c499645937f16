"""Write a TypedDict for each kind of record: `gitmem/records/record_types.py`.

For developers, after a change of a model: `python tools/compile_types.py`. The types come from the
compiled table, so readers can rely on them: a field is required if every line has it. A test compares the checked-in
file with a fresh one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TYPES = ROOT / "gitmem" / "records" / "record_types.py"

HEADER = '''"""The records as they are read from lines, for type checkers alone. Written by `tools/compile_types.py`: don't edit.

Import it under `TYPE_CHECKING`. A record has every required field of its kind, and the other ones where its line has them.
"""

# One field, one line:
# fmt: off
from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, Protocol, TypedDict, overload

if TYPE_CHECKING:
    from collections.abc import Sequence
'''


def main() -> int:
    """Write the types."""
    TYPES.write_text(compile_types(), encoding="utf-8")
    return 0


def compile_types() -> str:
    """Return the source of `record_types.py`, from the present table."""
    from gitmem.records import table

    text = HEADER
    names = []
    for kind, fields in table.FIELDS.items():
        name = table.MODELS[kind].partition(":")[2] + "Record"
        names.append(name)
        text += f'\n\nclass {name}(TypedDict):\n    """A line of the kind `{kind}`."""\n\n    at: str\n    kind: Literal["{kind}"]\n'
        for field, form in fields.items():
            type_ = written(form)
            has = field in table.REQUIRED[kind] or field in table.FILLED[kind]
            text += f"    {field}: {type_}\n" if has else f"    {field}: NotRequired[{type_}]\n"
    text += f"\n\nAnyRecord = {' | '.join(names)}\n"
    text += '\n\nclass ReadKind(Protocol):\n    """The type of `records.read_kind`."""\n'
    for kind, name in zip(table.FIELDS, names, strict=True):
        text += f'\n    @overload\n    def __call__(self, kind: Literal["{kind}"], line: bytes) -> {name} | None: ...\n'
    return text


def written(form: tuple[Any, ...]) -> str:
    """Return a form of the table as a type."""
    kind, null = form[0], form[1]
    if kind == "flag":
        found = "bool"
    elif kind == "object":
        found = "dict[str, object]"
    elif kind == "choice":
        found = f"Literal[{', '.join(chr(34) + value + chr(34) for value in form[2])}]"
    elif kind == "list":
        found = f"Sequence[{written(form[2])}]"
    else:
        found = "str"
    return f"{found} | None" if null else found


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
