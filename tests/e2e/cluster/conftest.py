"""A cluster for the tests that hand their jobs to one."""

import pytest

from tests.e2e.cluster import slurm


@pytest.fixture(scope="session")
def cluster():
    with slurm.cluster() as environment:
        yield environment
