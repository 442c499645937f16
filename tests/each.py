"""One test of a rule for many values: a test of its own for each costs ten times as much as what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def each(values: Iterable[object]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a function for these values, as `pytest.mark.parametrize` makes many; tuples are several arguments.

    It tries all of them, and names those that break the rule.
    """

    cases = list(values)
    assert cases, "a rule for nothing holds always"

    def one_test(rule: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for number, value in enumerate(cases):
                try:
                    rule(*value) if isinstance(value, tuple) else rule(value)
                except AssertionError as error:
                    broken.append(f"{number}, {ascii(value)[:80]}: {str(error).partition(chr(10))[0]}")
            assert not broken, "\n".join(broken)

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        return test

    return one_test
