"""Write the rules of the record models as plain literals: `gitmem/records/table.py`.

For developers, after a change of a model: `python tools/compile_table.py`. It reads the schemas by which
pydantic validates (`__pydantic_core_schema__`) and raises an error for a rule that the table can't express.
A test compares the checked-in table with a fresh one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "gitmem" / "records" / "table.py"
ORDER = (
    "signal",
    "receipt",
    "session",
    "name",
    "node",
    "patch",
    "relation",
    "access",
    "audit",
    "task",
    "task_event",
    "claim",
)  # later kinds follow by name
KEY = "idempotency_key"
FRAME = ("at", "kind")  # the line's own, checked by its readers
NO_LIMIT = 256 * 1024

HEADER = '''"""The rules of the record models as plain literals. Written by `tools/compile_table.py`: don't edit.

A field's form is (form, may be null, …):
("flag", null) · ("object", null) · ("choice", null, values, values when written) · ("list", null, form of an entry) ·
("line", null, least, most, refused characters, text rule): printable text ·
("word", null, least, most, (start, its length, characters of the rest), text rule) ·
("form", null, least, most, (start, runs of (characters, least, most)), text rule) · ("text", null, least, most, "", text rule);
text rule = (most bytes, refused prefix, no white space at the ends, values when written).
"""

# One field, one line:
# fmt: off
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

'''


class CannotExpressError(Exception):
    """A rule of a model that the table has no form for. Extend the tool and the table's reader, or change the model."""


def main() -> int:
    """Write the table."""
    TABLE.write_text(compile_table(), encoding="utf-8")
    return 0


def compile_table() -> str:
    """Return the source of `table.py`, from the present models."""
    models = found_models()
    tables: dict[str, tuple[str, dict[str, Any]]] = {
        "MODELS": ("str", {m.KIND: m.__name__ for m in models}),
        "STREAMS": ("str", {m.KIND: m.STREAM for m in models}),
        "FIRST_OF": ("dict[str, str]", {m.KIND: m.FIRST_OF for m in models}),
        "REQUIRED": ("tuple[str, ...]", {m.KIND: required(m) for m in models}),
        "FILLED": ("dict[str, Any]", {m.KIND: filled(m) for m in models}),
        "KEYED": ("tuple[str, ...]", {m.KIND: keyed(m) for m in models if KEY in fields(m)}),
        "FIELDS": (
            "dict[str, tuple[Any, ...]]",
            {m.KIND: {name: form(field["schema"]) for name, field in fields(m).items()} for m in models},
        ),
    }
    return HEADER + "".join(
        f"{name}: dict[str, {kind}] = {written(table)}\n" for name, (kind, table) in tables.items()
    )


def found_models() -> list[Any]:
    """Return the model of every kind: the subclasses of Record in `gitmem.records.kinds`."""
    from gitmem.records import kinds
    from gitmem.records.base import Record

    found = [model for model in Record.__subclasses__() if model.__module__ == kinds.__name__]
    for model in found:
        model.model_rebuild()
    return sorted(found, key=lambda m: (ORDER.index(m.KIND) if m.KIND in ORDER else len(ORDER), m.KIND))


def fields(model: Any) -> dict[str, Any]:
    """Return the core schemas of the fields after the frame, by name."""
    schema = model.__pydantic_core_schema__
    if schema["type"] != "model":
        raise CannotExpressError(f"{model.__name__}: {schema['type']}")
    if schema["config"].get("extra_fields_behavior") != "allow" or not schema["config"].get("strict"):
        raise CannotExpressError(f"{model.__name__}: it must be strict and keep unknown fields")
    inner = schema["schema"]
    if inner["type"] != "model-fields" or inner.get("computed_fields"):
        raise CannotExpressError(f"{model.__name__}: {inner['type']}")
    for name, field in inner["fields"].items():
        if field["type"] != "model-field" or "validation_alias" in field:
            raise CannotExpressError(f"{model.__name__}.{name}: {field}")
    return {name: field for name, field in inner["fields"].items() if name not in FRAME}


def required(model: Any) -> tuple[str, ...]:
    """Return the names of the fields without a default."""
    return tuple(name for name, field in fields(model).items() if field["schema"]["type"] != "default")


def keyed(model: Any) -> tuple[str, ...]:
    """Return the fields that must be equal in two records of one idempotency key."""
    left_out = {"schema_version", "mac", f"{model.KIND}_id", KEY, *model.MAY_DIFFER}
    if unknown := set(model.MAY_DIFFER) - fields(model).keys():
        raise CannotExpressError(f"{model.__name__}.MAY_DIFFER: {unknown}")
    return tuple(name for name in fields(model) if name not in left_out)


def filled(model: Any) -> dict[str, Any]:
    """Return the defaults of the fields that are written when they are not given, by name."""
    defaults = {
        name: field["schema"]["default"]
        for name, field in fields(model).items()
        if field["schema"]["type"] == "default"
    }
    return {name: value for name, value in defaults.items() if value or name in model.KEPT}


def form(schema: Any, null: bool = False) -> tuple[Any, ...]:  # noqa: C901  (one branch for each schema of pydantic's)
    """Return the form of a field; raise CannotExpressError for an unknown schema, or an unknown key in one."""
    kind = schema["type"]
    if kind == "default":
        only(schema, "schema", "default")
        return form(schema["schema"])
    if kind == "nullable":
        only(schema, "schema")
        return form(schema["schema"], null=True)
    if kind == "bool":
        only(schema)
        return ("flag", null)
    if kind == "dict":
        only(schema, "keys_schema", "values_schema")
        if (schema["keys_schema"], schema["values_schema"]) != ({"type": "str"}, {"type": "any"}):
            raise CannotExpressError("an object must be of any values by text")
        return ("object", null)
    if kind == "tuple":
        only(schema, "items_schema", "variadic_item_index", "strict")
        if schema.get("variadic_item_index") != 0 or len(schema["items_schema"]) != 1:
            raise CannotExpressError("a tuple must be of one form and any length")
        return ("list", null, form(schema["items_schema"][0]))
    if kind == "function-after":
        return with_text_rule(schema, null)
    if kind == "literal":
        only(schema, "expected")
        if not all(type(value) is str for value in schema["expected"]):
            raise CannotExpressError("a literal must be text")
        return ("choice", null, tuple(schema["expected"]), ())
    if kind == "str":
        return text_form(schema, null)
    raise CannotExpressError(f"schema {kind}")


def with_text_rule(schema: Any, null: bool) -> tuple[Any, ...]:
    """Return the form of a value that a `TextRule` checks after its type."""
    from gitmem.records.base import TextRule

    only(schema, "schema", "function")
    rule = schema["function"]["function"]
    if type(rule) is not TextRule or schema["function"]["type"] != "with-info":
        raise CannotExpressError(f"the validator {rule!r}")
    inner = form(schema["schema"], null)
    if inner[0] == "choice":
        if (
            rule.max_bytes
            or rule.not_prefix
            or rule.trimmed
            or rule.not_written
            or not set(rule.written) <= set(inner[2])
        ):
            raise CannotExpressError("a choice can only be narrowed when written")
        return (*inner[:3], rule.written)
    if inner[0] not in ("line", "word", "form", "text") or inner[5]:
        raise CannotExpressError(f"an Also after {inner[0]}")
    return (*inner[:5], (rule.max_bytes, rule.not_prefix, rule.trimmed, rule.written, rule.not_written))


def text_form(schema: Any, null: bool) -> tuple[Any, ...]:
    """Return the form of a text, from its length and pattern."""
    only(schema, "pattern", "min_length", "max_length")
    least, most = schema.get("min_length", 0), schema.get("max_length", NO_LIMIT)
    if "pattern" not in schema:
        return ("text", null, least, most, "", ())
    runs = parsed(schema["pattern"])
    if len(runs) == 1 and runs[0].refused:
        run = runs[0]
        # Of the refused characters, printable text can contain only the printable ones.
        shown = "".join(char for char in map(chr, sorted(run.codes)) if char.isprintable())
        return ("line", null, max(least, run.least), min(most, run.most), shown, ())
    table = [(run.ascii(), run.least, run.most) for run in runs]
    start = ""
    while table and table[0][1:] == (1, 1) and len(table[0][0]) == 1:
        start += table.pop(0)[0]
    if len(table) == 1:
        rest, fewest, limit = table[0]
        least, most = max(least, len(start) + fewest), min(most, len(start) + limit)
        return ("word", null, least, most, (start, len(start), rest), ())
    return ("form", null, least, most, (start, tuple(table)), ())


class Run:
    """A character class of a pattern, and its least and greatest number of repetitions."""

    def __init__(self, codes: set[int], refused: bool) -> None:
        self.codes, self.refused = codes, refused
        self.least = self.most = 1

    def ascii(self) -> str:
        """Return the allowed ASCII characters. A refusing class allows others, too, which only the models accept."""
        if self.refused:
            return "".join(chr(code) for code in range(0x20, 0x7F) if code not in self.codes)
        if max(self.codes) > 0x7E:
            raise CannotExpressError("a class of characters beyond ASCII")
        return "".join(map(chr, sorted(self.codes)))


def parsed(pattern: str) -> list[Run]:
    """Parse a pattern `^…$` of characters, classes and repetitions; raise CannotExpressError for any other."""
    runs: list[Run] = []
    for mark in TOKENS.finditer(pattern):
        token = mark.group()
        if token in ("^", "$"):
            if mark.start() not in (0, len(pattern) - 1):
                raise CannotExpressError(f"{token} inside {pattern}")
        elif mark.lastgroup == "times":
            if not runs or (runs[-1].least, runs[-1].most) != (1, 1):
                raise CannotExpressError(f"{token} in {pattern}")
            runs[-1].least, runs[-1].most = times(token)
        elif mark.lastgroup == "set":
            runs.append(Run(codes_of(token[1:-1].removeprefix("^")), token.startswith("[^")))
        elif mark.lastgroup == "char":
            runs.append(Run({code_of(token)}, False))
        else:
            raise CannotExpressError(f"{token} in {pattern}")
    if pattern[:1] != "^" or pattern[-1:] != "$":
        raise CannotExpressError(f"{pattern} does not hold for the whole text")
    return runs


# A set contains characters, \uXXXX and ranges of them. Outside of sets: \uXXXX, escaped marks and plain characters.
TOKENS = re.compile(
    r"(?P<anchor>[\^$])|(?P<times>[*+?]|\{[0-9,]+\})|(?P<set>\[(?:[^\[\]\\]|\\u[0-9a-f]{4})+\])"
    r"|(?P<char>\\u[0-9a-f]{4}|\\[.\-]|[A-Za-z0-9:_-])|(?P<other>.)",
    re.DOTALL,
)


def times(mark: str) -> tuple[int, int]:
    """Return the least and the greatest number of repetitions."""
    if mark in ("*", "+", "?"):
        return {"*": (0, NO_LIMIT), "+": (1, NO_LIMIT), "?": (0, 1)}[mark]
    least, comma, most = mark[1:-1].partition(",")
    return int(least), int(most) if most else NO_LIMIT if comma else int(least)


def codes_of(inside: str) -> set[int]:
    """Return the code points of a set, from the text between its brackets."""
    ends = re.findall(r"\\u[0-9a-f]{4}|.", inside, re.DOTALL)
    codes: set[int] = set()
    while ends:
        first = last = code_of(ends.pop(0))
        if len(ends) >= 2 and ends[0] == "-":
            last = code_of(ends[1])
            del ends[:2]
        codes.update(range(first, last + 1))
    return codes


def code_of(token: str) -> int:
    """Return the code point of one character, escaped or not."""
    return int(token[2:], 16) if token.startswith("\\u") else ord(token[-1])


def only(schema: Any, *known: str) -> None:
    """Raise CannotExpressError for a schema with a key that is not known here."""
    more = set(schema) - {"type", "metadata", "ref", *known}
    if more:
        raise CannotExpressError(f"{schema['type']} with {', '.join(sorted(more))}")


def written(table: dict[str, Any]) -> str:
    """Return a dict by kind as source: one line for each kind, or for each field of a kind."""
    lines = ["{"]
    for kind, value in table.items():
        if isinstance(value, dict) and value:
            lines += [
                f"    {kind!r}: {{",
                *(f"        {name!r}: {item!r}," for name, item in value.items()),
                "    },",
            ]
        else:
            lines.append(f"    {kind!r}: {value!r},")
    return "\n".join([*lines, "}"])


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
