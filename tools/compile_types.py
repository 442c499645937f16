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

# Fields of a line that are not part of its content: callers never pass the version, which is the same in every record.
OUTER, VERSION = ("mac", "seen"), "schema_version"
PARTIAL = ("patch",)  # kinds whose required fields are added to existing content

HEADER = '''"""The records as they are read from lines, for type checkers alone. Written by `tools/compile_types.py`: don't edit.

Import it under `TYPE_CHECKING`. A record has every required field of its kind, and the other ones where its line has them.
`Fields` are what a writer passes to `Store.line`, where other fields may be missing.
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
    names = {kind: table.MODELS[kind] for kind in table.FIELDS}
    for kind, fields in table.FIELDS.items():
        types = {field: written(form, exact=False) for field, form in fields.items()}
        filled = [field for field in table.FILLED[kind] if field != VERSION]
        required = [field for field in table.REQUIRED[kind] if kind in PARTIAL]
        own = [field for field in fields if field not in (*OUTER, VERSION, *filled, *required)]
        lines = [(field, types[field], field in table.REQUIRED[kind]) for field in own]
        given = [(field, types[field], field in required) for field in (*required, *filled)]
        base, of = "TypedDict", f"{names[kind]}Fields"
        if given:
            base = f"{names[kind]}Content"
            text += typed_dict(
                base, f"The content of a `{kind}`, without {', '.join((*required, *filled))}.", lines
            )
        text += typed_dict(of, f"The fields of a new `{kind}`.", given or lines, base)
        outer = [("at", "str", True), ("kind", f'Literal["{kind}"]', True)]
        outer += [(field, types[field], False) for field in OUTER if field in fields]
        outer += [(field, written(fields[field], exact=True), True) for field in filled]
        text += typed_dict(
            f"{names[kind]}Record", f"A line of the kind `{kind}`.", outer, base if filled else of
        )
    for of in ("Fields", "Record"):
        text += f"\n\nAny{of} = {' | '.join(name + of for name in names.values())}"
    text += "\n"
    text += '\n\nclass ReadKind(Protocol):\n    """The type of `records.read_kind`."""\n'
    for kind, name in names.items():
        text += f'    @overload\n    def __call__(self, kind: Literal["{kind}"], line: bytes) -> {name}Record | None: ...\n'
    return text


def typed_dict(name: str, doc: str, fields: list[tuple[str, str, bool]], base: str = "TypedDict") -> str:
    """Return the source of a TypedDict.

    Args:
        fields: Name and type of each field, and whether it is always there.
    """
    lines = [f"    {field}: {type_ if has else f'NotRequired[{type_}]'}\n" for field, type_, has in fields]
    return f'\n\nclass {name}({base}):\n    """{doc}"""\n{"".join(lines)}'


def written(form: tuple[Any, ...], *, exact: bool) -> str:
    """Return a form of the table as a type.

    Args:
        form: The form.
        exact: Whether to list the values of a choice. Writers may get the value from a user, and the models check it.
    """
    kind, null = form[0], form[1]
    if kind == "flag":
        found = "bool"
    elif kind == "object":
        found = "dict[str, object]"
    elif kind == "choice" and exact:
        found = f"Literal[{', '.join(chr(34) + value + chr(34) for value in form[2])}]"
    elif kind == "list":
        found = f"Sequence[{written(form[2], exact=exact)}]"
    else:
        found = "str"
    return f"{found} | None" if null else found


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
