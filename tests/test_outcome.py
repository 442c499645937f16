"""A class that annotates its fields has a constructor of them, and an outcome has them as JSON."""

from __future__ import annotations

import pytest

from gitmem.outcome import Outcome, Struct


class Point(Struct):
    x: int
    y: int = 0
    marks: list[str] = []


class Found(Outcome, kw_only=True):
    names: list[str] = []
    count: int
    at: Point | None = None


class Longer(Found, kw_only=True):
    more: int


def test_values_are_those_given_else_the_defaults_of_the_class() -> None:
    """By place or by name."""
    assert [vars(each) | {"y": each.y} for each in (Point(1), Point(1, 2), Point(x=1, marks=["a"]))] == [
        {"x": 1, "y": 0, "marks": []},
        {"x": 1, "y": 2, "marks": []},
        {"x": 1, "y": 0, "marks": ["a"]},
    ]


def test_a_list_of_the_class_is_no_ones_but_the_values() -> None:
    """A default that one value changes stays as it is for the next."""
    Point(1).marks.append("a")

    assert Point(1).marks == Point.marks == []


def test_a_field_without_a_value_is_an_error() -> None:
    """Where mypy does not look."""
    with pytest.raises(TypeError, match="Point has no x"):
        Point(y=1)  # type: ignore[call-arg]


def test_the_fields_of_the_json_form_are_those_of_the_bases_and_of_the_class_in_their_order() -> None:
    """Also those that still have their default."""
    found = Longer(more=2, count=1)

    assert list(found.as_json().items()) == [("names", []), ("count", 1), ("at", None), ("more", 2)]


def test_what_has_the_same_name_is_taken_from_another_value() -> None:
    """From attributes or keys; what is given counts."""
    assert Longer.taken_from(Found(count=1), more=2).count == 1
    assert repr(Point.taken_from({"x": 1, "y": 2, "z": 3}, y=4)) == "Point(x=1, y=4, marks=[])"
