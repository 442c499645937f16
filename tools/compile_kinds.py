"""Derive from the models of the kinds what is checked in: the table and the types of records, and the tables of `docs/records.md`.

For developers, after a change of `gitmem/records/kinds.py`: `python tools/compile_kinds.py`. The rules are read from the
schemas by which pydantic validates (`__pydantic_core_schema__`); a rule that the table can't express raises an error. A test
compares the checked-in files with fresh ones.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "gitmem" / "records" / "table.py"
TYPES = ROOT / "gitmem" / "records" / "record_types.py"
OPTIONS = ROOT / "gitmem" / "records" / "option_types.py"
PAGE = ROOT / "docs" / "records.md"
KEY = "idempotency_key"
FRAME = ("at", "kind")  # the line's own, checked by its readers
VERSION = "schema_version"  # the same in every record: callers never pass it
OUTER = ("writer", "texts", "seen")  # fields of a line that are not part of its content
PARTIAL = ("patch",)  # kinds whose required fields are added to existing content
NO_LIMIT = 256 * 1024

HEADER = '''"""The rules of the record models as plain literals. Written by `tools/compile_kinds.py`: don't edit.

A field's form is (form, may be null, …):
("flag", null) · ("object", null) · ("choice", null, values) · ("list", null, form of an entry) ·
("line", null, least, most, refused characters, text rule): printable text ·
("word", null, least, most, (start, its length, characters of the rest), text rule) ·
("form", null, least, most, (start, runs of (characters, least, most)), text rule) · ("text", null, least, most, "", text rule);
text rule = (most bytes, refused prefix, no white space at the ends, values when written, work unit that is not written).
OWN: fields with an id of the line's writer: (field, start of an id, length of a bound one, event that excepts it).
ADDRESSES: fields with an address of the line's writer.
NOT_SHOWN: what a line may have and answers must not take from it. TEXTS: the fields after the salt. HEAD: how the head of a signal says a field.
OPTIONS of signals by name: field, sentence, metavar, whether the tool has it.
"""

# One field, one line:
# fmt: off
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

'''
TYPES_HEADER = '''"""The records as they are read from lines, and in the form of answers. Written by `tools/compile_kinds.py`: don't edit.

For type checkers: everyday commands must not import it. A record has every required field of its kind, and the other ones where its
line has them. `Fields` are what a writer passes to `Store.line`, where other fields may be missing.
"""

# One field, one line:
# fmt: off
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, Protocol, TypedDict, final, overload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .kinds import Conflict, TaskDifference
'''
OPTIONS_HEADER = '''"""The options that set fields of signals. Written by `tools/compile_kinds.py`: don't edit."""

# One option, one line:
# fmt: off
from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  (the types are evaluated for commands and tools)
from typing import NotRequired, TypedDict
'''


class CannotExpressError(Exception):
    """A rule of a model that the table has no form for. Extend the tool and the table's reader, or change the model."""


def main() -> int:
    """Write the files."""
    TABLE.write_text(compile_table(), encoding="utf-8")
    TYPES.write_text(compile_types(), encoding="utf-8")
    OPTIONS.write_text(compile_options(), encoding="utf-8")
    PAGE.write_text(compile_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def found_models() -> list[Any]:
    """Return the model of every kind."""
    from gitmem.records import kinds

    found = kinds.models()
    for model in found:
        model.model_rebuild()
    return found


def known(model: Any) -> dict[str, Any]:
    """Return what is known of the fields after the frame, by name."""
    from gitmem.records import kinds

    return {name: kinds.known_of(field) for name, field in model.model_fields.items() if name not in FRAME}


def compile_table() -> str:
    """Return the source of `table.py`."""
    from gitmem.text import addresses

    models = found_models()
    of = {m.KIND: known(m) for m in models}
    clearable = {
        kind: tuple(name for name, each in fields.items() if each.clearable) for kind, fields in of.items()
    }
    tables: dict[str, tuple[str, dict[str, Any]]] = {
        "MODELS": ("str", {m.KIND: m.__name__ for m in models}),
        "STREAMS": ("str", {m.KIND: m.STREAM for m in models}),
        "NOUNS": ("str", {m.KIND: m.NOUN or m.KIND.replace("_", " ") for m in models}),
        "FIRST_OF": (
            "dict[str, str]",
            {
                kind: {name: each.first_of for name, each in fields.items() if each.first_of}
                for kind, fields in of.items()
            },
        ),
        "REQUIRED": ("tuple[str, ...]", {m.KIND: required(m) for m in models}),
        "FILLED": ("dict[str, Any]", {m.KIND: filled(m) for m in models}),
        "OWN": ("tuple[tuple[str, str, int, str], ...]", {m.KIND: own(m) for m in models}),
        "ADDRESSES": (
            "tuple[str, ...]",
            {m.KIND: tuple(name for name in addresses.ADDRESS_FIELDS if name in fields(m)) for m in models},
        ),
        "KEYED": ("tuple[str, ...]", {m.KIND: keyed(m) for m in models if KEY in fields(m)}),
        "CLEARABLE": ("tuple[str, ...]", {kind: names for kind, names in clearable.items() if names}),
        "NOT_SHOWN": ("tuple[str, ...]", {m.KIND: not_shown(m, models) for m in models}),
        "TEXTS": (
            "tuple[str, ...]",
            {
                kind: texts
                for kind, of_kind in of.items()
                if (texts := tuple(n for n, each in of_kind.items() if each.text))
            },
        ),
        "HEAD": ("str", {name: each.head for name, each in of["signal"].items() if each.head}),
        "OPTIONS": ("tuple[str, str, str, bool]", options(of["signal"])),
        "FIELDS": (
            "dict[str, tuple[Any, ...]]",
            {m.KIND: {name: form(field["schema"]) for name, field in fields(m).items()} for m in models},
        ),
    }
    nameless = tuple(m.KIND for m in models if not m.NAMES)
    return (
        HEADER
        + "".join(f"{name}: dict[str, {kind}] = {written(table)}\n" for name, (kind, table) in tables.items())
        + f"NAMELESS: tuple[str, ...] = {nameless!r}  # kinds whose lines do not change who is here under which name\n"
    )


def options(of: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the options that set fields of signals, by their names."""
    return {
        each.option.name or name: (
            name,
            each.option.help,
            each.option.metavar,
            each.option.tool,
        )
        for name, each in of.items()
        if each.option
    }


def not_shown(model: Any, models: list[Any]) -> tuple[str, ...]:
    """Return the names in a line that answers do not show: the frame's, hidden fields, and properties that answers add."""
    hidden = [name for name, each in known(model).items() if not each.shown]
    added = {name for each in models for name in answers(each)}
    return (*FRAME, *hidden, *sorted(added - model.model_fields.keys()))


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


def answers(model: Any) -> dict[str, Any]:
    """Return the properties that answers add to a record, with their types."""
    found: dict[str, Any] = getattr(model.ANSWER, "__annotations__", {})
    return found


def keyed(model: Any) -> tuple[str, ...]:
    """Return the fields that must be equal in two records of one idempotency key."""
    left_out = {VERSION, *OUTER, f"{model.KIND}_id", KEY}
    return tuple(name for name, each in known(model).items() if name not in left_out and not each.may_differ)


def own(model: Any) -> tuple[tuple[str, str, int, str], ...]:
    """Return the fields with ids of the line's writer, each with the start and length of one, and the event that excepts it."""
    from gitmem.records.ids import BOUND_LENGTH
    from gitmem.text import addresses

    forms = {name: form(field["schema"]) for name, field in fields(model).items()}
    starts = {name: forms[name][4][0] for name, each in known(model).items() if each.defines}
    starts |= {name: "sess-" for name in addresses.WRITER_FIELDS if name in forms}
    return tuple(
        (name, start, len(start) + BOUND_LENGTH, known(model)[name].but_for) for name, start in starts.items()
    )


def filled(model: Any) -> dict[str, Any]:
    """Return the defaults of the fields that are written when they are not given, by name."""
    defaults = {
        name: field["schema"]["default"]
        for name, field in fields(model).items()
        if field["schema"]["type"] == "default"
    }
    return {name: value for name, value in defaults.items() if value or known(model)[name].kept}


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
        return ("choice", null, tuple(schema["expected"]))
    if kind == "str":
        return text_form(schema, null)
    raise CannotExpressError(f"schema {kind}")


def with_text_rule(schema: Any, null: bool) -> tuple[Any, ...]:
    """Return the form of a value that a `TextRule` checks after its type."""
    from gitmem.records.kinds import TextRule

    only(schema, "schema", "function")
    rule = schema["function"]["function"]
    if type(rule) is not TextRule or schema["function"]["type"] != "with-info":
        raise CannotExpressError(f"the validator {rule!r}")
    inner = form(schema["schema"], null)
    if inner[0] not in ("line", "word", "form", "text") or inner[5]:
        raise CannotExpressError(f"a rule after {inner[0]}")
    return (
        *inner[:5],
        (rule.max_bytes, rule.not_prefix, rule.trimmed, rule.written, rule.not_written, rule.real),
    )


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


def compile_types() -> str:
    """Return the source of `record_types.py`."""
    models = found_models()
    text = TYPES_HEADER
    for model in models:
        text += types_of(model)
    for of in ("Fields", "Record"):
        text += f"\n\nAny{of} = {' | '.join(model.__name__ + of for model in models)}"
    text += '\n\n\nclass ReadKind(Protocol):\n    """The type of `records.read_kind`."""\n'
    for m in models:
        text += overload(f'kind: Literal["{m.KIND}"], line: bytes', f"{m.__name__}Record | None")
    text += '\n\nclass Show(Protocol):\n    """The type of `records.shown`."""\n'
    for name, found in (
        *((f"{m.__name__}Record", f"Shown{m.__name__}") for m in models if has_shown(m)),
        ("Mapping[str, object]", "Mapping[str, Any]"),
    ):
        text += overload(f"record: {name}, *, kind: bool = False", found)
    return text


def overload(arguments: str, found: str) -> str:
    """Return the source of one overload of a call."""
    return f"    @overload\n    def __call__(self, {arguments}) -> {found}: ...\n"


def compile_options() -> str:
    """Return the source of `option_types.py`."""
    from gitmem.records import kinds

    of, text = known(kinds.Signal), OPTIONS_HEADER
    for name, doc, base, reply in (
        ("ReplyFieldOptions", "The options that set fields of a reply.", "TypedDict", True),
        ("SignalFieldOptions", "The options that set fields of a signal.", "ReplyFieldOptions", False),
    ):
        found = [
            (field, each.option) for field, each in of.items() if each.option and each.option.reply == reply
        ]
        told = "".join(f"\n        {each.name or field}: {each.help}" for field, each in found)
        types = {
            each.name or field: option_type(kinds.Signal.model_fields[field].annotation)
            for field, each in found
        }
        lines = [(option, type_, False) for option, type_ in types.items()]
        text += typed_dict(name, f"{doc}\n\n    Attributes:{told}\n    ", lines, base)
    return text


def option_type(annotation: Any) -> str:
    """Return the type of an option that sets a field."""
    if annotation is bool:
        return "bool"
    if origin(annotation) is tuple:
        return "Sequence[str] | None"
    from gitmem.records.kinds import Form, parts_of

    is_count = any(isinstance(each, Form) and each.name == "count" for each in parts_of(annotation))
    return "int | str | None" if is_count else "str | None"


def types_of(model: Any) -> str:
    """Return the source of the types of one kind."""
    kind, name, forms = model.KIND, model.__name__, {n: form(f["schema"]) for n, f in fields(model).items()}
    types = {field: type_of(each, exact=False) for field, each in forms.items()}
    given_always = [field for field in filled(model) if field != VERSION]
    added = [field for field in required(model) if kind in PARTIAL]
    own = [field for field in forms if field not in (*OUTER, VERSION, *given_always, *added)]
    lines = [(field, types[field], field in required(model)) for field in own]
    given = [(field, types[field], field in added) for field in (*added, *given_always)]
    text, base, of = "", "TypedDict", f"{name}Fields"
    if given:
        base = f"{name}Content"
        text += typed_dict(
            base, f"The content of a `{kind}`, without {', '.join((*added, *given_always))}.", lines
        )
    text += typed_dict(of, f"The fields of a new `{kind}`.", given or lines, base)
    content = base if given_always else of
    outer = [("at", "str", True), ("kind", f'Literal["{kind}"]', True)]
    outer += [(field, types[field], False) for field in OUTER if field in forms]
    outer += [(field, type_of(forms[field], exact=True), True) for field in given_always]
    text += typed_dict(f"{name}Record", f"A line of the kind `{kind}`.", outer, content)
    shown = [("created_at", "str", True), ("kind", f'Literal["{kind}"]', False)]
    shown += [(field, types[field], True) for field in given_always]
    shown += [(field, of.__forward_arg__, False) for field, of in answers(model).items()]
    if not has_shown(model):
        return text
    final = typed_dict(f"Shown{name}", f"A `{kind}` as an answer shows it.", shown, content)
    return text + final.replace("\n\nclass", "\n\n@final\nclass", 1)


def has_shown(model: Any) -> bool:
    """Return whether answers about a kind have a type: some code fills them in, field by field."""
    return model.KIND in ("signal", "task", "task_event")


def typed_dict(name: str, doc: str, fields: list[tuple[str, str, bool]], base: str = "TypedDict") -> str:
    """Return the source of a TypedDict.

    Args:
        fields: Name and type of each field, and whether it is always there.
    """
    lines = [f"    {field}: {type_ if has else f'NotRequired[{type_}]'}\n" for field, type_, has in fields]
    return f'\n\nclass {name}({base}):\n    """{doc}"""\n{"".join(lines)}'


def type_of(form: tuple[Any, ...], *, exact: bool) -> str:
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
        found = f"Sequence[{type_of(form[2], exact=exact)}]"
    else:
        found = "str"
    return f"{found} | None" if null else found


def compile_page(page: str) -> str:
    """Return the page of the kinds with fresh tables of fields; a new kind gets a section after the others."""
    for model in found_models():
        heading = f"### {model.KIND} (stream `{model.STREAM}`)\n"
        if heading not in page:
            page += f"\n{heading}\n{model.__doc__}\n\n| field |\n"
        before, _, after = page.partition(heading)
        above, _, below = after.partition("|")
        left = re.sub(r"^.*\n(?:\|.*\n)*", "", below, count=1)
        page = before + heading + above + rows(model) + left
    return page


def rows(model: Any) -> str:
    """Return the table of a kind's fields for the page."""
    of = known(model)
    found = ["| field | form | meaning |", "|---|---|---|"]
    for name, field in model.model_fields.items():
        if name in (*FRAME, VERSION, "writer", "texts"):
            continue
        notes = ["required"] * field.is_required() + ["deprecated"] * bool(of[name].first_of)
        notes += ["always written"] * of[name].kept
        notes += ["salted"] * of[name].text
        notes += ["may differ"] * (of[name].may_differ and KEY in of)
        found.append(f"| `{name}` | {'; '.join([told(field), *notes])} | {field.description} |")
    return "\n".join(found) + "\n"


def told(field: Any) -> str:
    """Return the form of a field in words."""
    from gitmem.records.kinds import Form, TextRule, parts_of

    parts = [*field.metadata, field.annotation, *parts_of(field.annotation)]
    listed = [str(value) for part in parts for value in literals(part)]
    open_ = next(
        (
            rule.written
            for part in parts
            if isinstance(rule := getattr(part, "func", None), TextRule) and rule.written
        ),
        (),
    )
    default = field.default if isinstance(field.default, str) else ""
    if listed or open_:
        values = (f"`{each}` (default)" if each == default else f"`{each}`" for each in (*listed, *open_))
        return ", ".join(values) + ("; others accepted on read" if open_ else "")
    if bool in parts or dict in map(origin, parts):
        return "flag" if bool in parts else "object"
    name = next(part.name for part in parts if isinstance(part, Form))
    if tuple in map(origin, parts):
        name += "es" if name.endswith(("s", "sh")) else "s"
    return name + (f", default `{default}`" if default else "")


def literals(part: Any) -> Iterable[Any]:
    """Return the values of a Literal."""
    return get_args(part) if str(part).startswith("typing.Literal[") else ()


def origin(part: Any) -> Any:
    """Return the generic type of an annotation."""
    return getattr(part, "__origin__", None)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
