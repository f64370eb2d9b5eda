"""What the tests of shared kinds of run have in common."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLIB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
