"""Which seeds are run: `pytest tests/simulation --seed 17` for one, `--seeds 2000` for as many from the first on."""

from __future__ import annotations

import pytest

SEEDS = 100
DISK_EVERY = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption("--seed", type=int, help="Run this seed alone, in memory and on the disk.")
    group.addoption("--seeds", type=int, default=SEEDS, help=f"How many seeds to run; {SEEDS}.")
    group.addoption("--first-seed", type=int, default=1, help="The first of them; 1.")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each seed, and one for each tenth seed that is run on the disk as well."""
    if not {"seed", "disk_seed"} & set(metafunc.fixturenames):
        return
    option = metafunc.config.getoption  # in a run of all tests the options are not known
    one, first = option("--seed", None), option("--first-seed", 1)
    seeds = [one] if one is not None else range(first, first + option("--seeds", SEEDS))
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds)
    else:
        metafunc.parametrize("disk_seed", [each for each in seeds if each == one or each % DISK_EVERY == 0])
