"""The bottleneck's numbers by hand, its experiment on tiny networks, and the procedure behind it."""

import math

import numpy as np
import pytest

from attnlib.training.vocabulary import PAD
from notebooks.shared.measure import exact_matches, measure_by_length, measure_summary_bits
from notebooks.shared.sequence_course import judged_samples
from tests.notebooks.figure_builders import written_rightly


def test_bits_are_what_is_left_of_the_words_surprise(recording):
    """Against a loop over samples and positions."""
    found, judged = measure_by_length(recording), judged_samples(recording.spec.resolved)
    assert found["vocabulary"] == 10
    place = found["lengths"].index(4)
    rows = [i for i in range(len(judged)) if len(judged.target(i)) == 4]
    bits, right = [], []
    for i in rows:
        losses = recording["loss"][-1, i, :4].tolist()
        bits.append(sum(math.log2(10) - loss / math.log(2) for loss in losses))
        right += recording["right"][-1, i, :4].tolist()
    assert found["bits"][place] == pytest.approx(np.mean(bits))
    assert found["bits_of_word"][place] == pytest.approx(np.mean(bits) / 4)
    assert found["token_accuracy"][place] == pytest.approx(np.mean(right))
    assert found["samples"][place] == len(rows)


def test_an_exact_match_has_every_word_and_the_end_mark(recording):
    judged = judged_samples(recording.spec.resolved)
    written = written_rightly(recording)
    written[1, 0] += 1  # a wrong word
    written[2, int((written[2] != PAD).sum()) - 1] = PAD  # no end mark
    changed = type(recording)(recording.spec, dict(recording.tensors) | {"written": written}, {})
    assert np.flatnonzero(~exact_matches(changed, judged)).tolist() == [1, 2]


def test_the_probe_reads_the_one_vector_position_by_position(recording):
    """Of a thousand sentences of three words at most a quarter is kept to judge, and enough to fit on."""
    found = measure_summary_bits(recording, length=3, samples=2_000)
    assert len(found["bits"]) == 3
    assert max(found["bits"]) < math.log2(10)
