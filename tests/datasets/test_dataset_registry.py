import re

import pytest

from attnlib.datasets.locate import check
from attnlib.datasets.registry import get, names
from attnlib.errors import UnknownName


def test_data_sets_are_found_without_a_list():
    assert {"multi30k", "scan", "news_commentary", "yelp", "gold_alignments"} <= set(names())


def test_an_unknown_data_set_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match="no data set 'multi3k'; did you mean 'multi30k'"):
        get("multi3k")


@pytest.mark.parametrize("name", names())
def test_entries_are_complete(name):
    dataset = get(name)
    assert dataset.name == name
    assert dataset.home.startswith("http")
    assert dataset.title
    assert dataset.licence
    assert dataset.files
    assert len({file.name for file in dataset.files}) == len(dataset.files)
    for file in dataset.files:
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        if file.url:
            assert file.name.rsplit("/")[-1] in file.url
            assert "/master/" not in file.url  # an address that moves cannot have a checksum
        # A file without address or checksum must be explained.
        assert file.fetchable or dataset.note


def test_text_that_may_not_be_passed_on_is_marked_and_not_fetched_from_a_copy():
    for name in ("yelp", "iwslt14"):
        assert get(name).redistribution == "forbidden"
        assert not any(file.fetchable for file in get(name).files)


@pytest.mark.parametrize("name", names())
def test_no_file_at_hand_is_corrupt(name):
    statuses = check(get(name))
    if all(status.state == "missing" for status in statuses):
        pytest.skip(f"data: no file of {name} at hand")
    assert not [status.detail for status in statuses if status.state == "corrupt"]
