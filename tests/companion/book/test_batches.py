"""Trainings in batches: each product in one, with those that the same figures need, and none too large."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from companion.book.plan import LARGEST, LARGEST_ON_DATA, batches
from companion.runs.keys import model_key
from companion.runs.recipe import RecipeSpec
from companion.runs.spec import ModelSpec

KEYS = [f"scan-AED-gru-w64-s{seed}-0642a296fa{seed:02}" for seed in range(20)]
SPEC = ModelSpec("scan", "AED", steps=2)
NEEDED = st.dictionaries(st.sampled_from("abcd"), st.sets(st.sampled_from(KEYS)), max_size=4)


@given(NEEDED)
def test_every_product_is_in_one_batch_that_all_who_wait_for_it_need_whole(chosen):
    needed = {result: dict.fromkeys(keys, SPEC) for result, keys in chosen.items()}
    made = [key for batch in batches(needed) for key in batch.specs]
    assert sorted(made) == sorted(set().union(*chosen.values()))
    for batch in batches(needed):
        assert 1 <= len(batch.specs) <= LARGEST
        for keys in chosen.values():
            assert batch.specs.keys() <= keys or not batch.specs.keys() & keys


def test_batches_of_one_group_are_of_like_size_and_named_for_what_is_in_them():
    found = batches({"a": dict.fromkeys(KEYS, SPEC)})
    sizes = [len(batch.specs) for batch in found]
    assert sum(sizes) == 20
    assert max(sizes) - min(sizes) <= 1
    assert found[0].name.startswith(f"scan-AED-gru-w64-s0-and-{sizes[0] - 1}-more-")
    assert all(one.name != other.name for one, other in pairwise(found))


def test_models_and_recipes_are_made_by_modules_of_their_own():
    spec = RecipeSpec.of("permutation_copying", seed=3)
    key = model_key(spec)
    found = batches({"a": {KEYS[0]: SPEC, key: spec}})
    assert {batch.module: list(batch.specs) for batch in found} == {
        "companion.runs.train": [KEYS[0]],
        "companion.runs.record": [key],
    }


def test_arguments_are_words_of_a_shell():
    (batch,) = batches({"a": {KEYS[0]: SPEC}})
    assert batch.arguments == f"--spec '{SPEC.to_json()}'"


def test_models_of_published_text_share_a_process_with_few_others():
    keys = [f"multi30k_en_fr-AED-gru-w64-s{seed}-0642a296fa{seed:02}" for seed in range(7)]
    found = batches({"a": dict.fromkeys(keys, ModelSpec("multi30k_en_fr", "AED", steps=2)) | {KEYS[0]: SPEC}})
    sizes = sorted(len(batch.specs) for batch in found)
    assert sizes == [1, 2, 2, 3]
    assert max(sizes) == LARGEST_ON_DATA
