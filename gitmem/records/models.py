"""Validation by the pydantic models: imported only if the fast validation is not enough."""

from __future__ import annotations

from pydantic import ValidationError

from . import kinds
from .base import FORMS
from .table import MODELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_SHOWN = 60  # characters of a rejected value in an error message


def model(kind: str) -> type[BaseModel]:
    """Return the model of a known kind, or of an object in records by its name."""
    found: type[BaseModel] = getattr(kinds, MODELS.get(kind, kind))
    return found


def first_error(record: Mapping[str, object], *, writing: bool) -> str | None:
    """Return the first error of a whole record of a known kind, as a sentence, or None if it is valid."""
    kind = str(record["kind"])
    try:
        model(kind).model_validate(record, context="writing" if writing else "reading")
    except ValidationError as error:
        return _sentence(kind, error.errors(include_url=False)[0])
    return None


def schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the lines of a known kind, or of an object in them."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model(kind).model_json_schema()}


def _sentence(kind: str, error: ErrorDetails) -> str:
    field, *inside = error["loc"] or ("record",)
    where = f"{field}[{inside[0]}]" if inside and isinstance(inside[0], int) else str(field)
    given, context = error["input"], error.get("ctx", {})
    shown = ascii(given if not isinstance(given, str) else given[:_SHOWN])[: _SHOWN + 2]
    what = f"The {kind}'s {where}"
    match error["type"]:
        case "missing":
            return f"{what} is missing"
        case "string_pattern_mismatch" if given == "":
            return f"{what} is empty"
        case "string_pattern_mismatch":
            return f"{what} must be {FORMS[context['pattern']]}, not {shown}"
        case "string_too_short":
            return f"{what} is empty"
        case "string_too_long":
            return f"{what} is {len(given)} characters, and at most {context['max_length']} are allowed"
        case "string_unicode":
            return f"{what} has half of a surrogate pair, which UTF-8 can't carry"
        case "literal_error":
            return f"{what} must be {context['expected']}, not {shown}"
        case "text_rule":
            named = f", not {shown}" if error["msg"].startswith("must be ") else ""
            return f"{what} {error['msg']}{named}"
        case _:
            return f"{what} is not right: {error['msg']}, not {shown}"
