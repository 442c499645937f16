"""Reasons for not accepting a tree of a peer."""

from __future__ import annotations


class Rejected(Exception):  # noqa: N818  (a finding, not an error)
    """A tree of a peer is not accepted; the text is the reason."""


class LimitExceeded(Rejected):
    """The tree has more than one sync accepts; later syncs accept the rest."""
