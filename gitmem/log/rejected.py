"""The findings about a tree of a peer that is not taken in."""

from __future__ import annotations


class Rejected(Exception):  # noqa: N818  (a finding, not an error)
    """A tree that may not be taken in; the text says why."""


class TooMuch(Rejected):
    """More than one sync takes in: the next ones take the rest."""
