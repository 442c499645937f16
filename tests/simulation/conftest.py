"""Which seeds are run.

The default profile runs the first 10, the first 4 with an adversary and the first 3 with votes; `-m deep` those up to 30, `-m soak` those up
to 2,000. `pytest tests/simulation --seed 17` runs one, `--seeds 300` that many from the first on.
"""

from __future__ import annotations

import pytest

# The parameter of a test → how many of its seeds the default profile runs.
SEEDS = {"seed": 10, "disk_seed": 10, "seed_of_attack": 4, "seed_of_votes": 3}
DEEP_SEEDS = 30
DISK_EVERY = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption(
        "--seed", type=int, help="Run this seed alone: in memory, on the disk and with an adversary."
    )
    group.addoption(
        "--seeds", type=int, help="How many seeds to run, instead of the default and the deep ones."
    )
    group.addoption("--first-seed", type=int, default=1, help="The first of them; 1.")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each seed, and one for each tenth seed that is run on the disk as well."""
    option = metafunc.config.getoption  # in a run of all tests the options are not known
    one, first, count = option("--seed", None), option("--first-seed", 1), option("--seeds", None)
    for name in SEEDS.keys() & set(metafunc.fixturenames):
        if one is not None:
            seeds: list[tuple[int, list[pytest.MarkDecorator]]] = [(one, [])]
        elif count is not None:
            seeds = [(each, []) for each in range(first, first + count)]
        else:
            deep = [pytest.mark.deep]
            every = range(first, first + DEEP_SEEDS)
            seeds = [(each, deep if each > SEEDS[name] else []) for each in every]
        metafunc.parametrize(
            name,
            [
                pytest.param(each, marks=marks)
                for each, marks in seeds
                if name != "disk_seed" or each == one or each % DISK_EVERY == 0
            ],
        )
