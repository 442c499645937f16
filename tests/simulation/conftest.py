"""Which seeds are run.

The default profile runs the first 25, `-m deep` those up to 100, `-m soak` those up to 2,000. `pytest tests/simulation
--seed 17` runs one, `--seeds 300` that many from the first on.
"""

from __future__ import annotations

import pytest

SEEDS = 25
DEEP_SEEDS = 100
DISK_EVERY = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption("--seed", type=int, help="Run this seed alone, in memory and on the disk.")
    group.addoption("--seeds", type=int, help=f"How many seeds to run, instead of {SEEDS} and the deep ones.")
    group.addoption("--first-seed", type=int, default=1, help="The first of them; 1.")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each seed, and one for each tenth seed that is run on the disk as well."""
    if not {"seed", "disk_seed"} & set(metafunc.fixturenames):
        return
    option = metafunc.config.getoption  # in a run of all tests the options are not known
    one, first, count = option("--seed", None), option("--first-seed", 1), option("--seeds", None)
    if one is not None:
        seeds = [(one, [])]
    elif count is not None:
        seeds = [(each, []) for each in range(first, first + count)]
    else:
        deep = [pytest.mark.deep]
        seeds = [(each, deep if each > SEEDS else []) for each in range(first, first + DEEP_SEEDS)]
    name = "seed" if "seed" in metafunc.fixturenames else "disk_seed"
    metafunc.parametrize(
        name,
        [
            pytest.param(each, marks=marks)
            for each, marks in seeds
            if name == "seed" or each == one or each % DISK_EVERY == 0
        ],
    )
