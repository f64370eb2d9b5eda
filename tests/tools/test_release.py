"""A release has one version, everywhere."""

import pytest

from tests.companion.data.data_builders import put
from tools.release import differences, versions

SOUND = {
    "attnlib/version.py": '__version__ = "1.2.0"\n',
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.0\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.0, 2026-12-01\n",
}


def test_this_checkout_names_one_version():
    assert len(set(versions().values())) == 1


def test_a_sound_release_passes(tmp_path):
    put(tmp_path, SOUND)
    assert differences("v1.2.0", tmp_path) == []


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        pytest.param("attnlib/version.py", '__version__ = "1.1.0"\n', "version.py: 1.1.0", id="package"),
        pytest.param("CITATION.cff", "version: 1.1.0\n", "CITATION.cff: 1.1.0", id="citation"),
        pytest.param("CHANGELOG.md", "## 1.2.0, not released yet\n", "not released", id="changelog"),
    ],
)
def test_a_place_that_differs_is_named(tmp_path, place, text, message):
    put(tmp_path, SOUND | {place: text})
    (line,) = differences("v1.2.0", tmp_path)
    assert message in line
