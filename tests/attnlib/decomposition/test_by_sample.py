"""Single samples: the pooled definitions applied to one sample at a time are the oracle."""

import torch

from attnlib.decomposition.shares import ShareSums, covariance_shares_by_sample, similarity_by_sample
from attnlib.decomposition.substitution import SUBSETS, SubstitutionSums


def random_terms():
    generator = torch.Generator().manual_seed(0)
    terms = torch.randn(3, 3, 4, 5, 6, dtype=torch.float64, generator=generator)
    target_mask = torch.arange(5) < torch.tensor([5, 3, 1, 4])[:, None]
    source_mask = torch.arange(6) < torch.tensor([6, 2, 4, 1])[:, None]
    return terms, target_mask, source_mask


def test_each_sample_has_the_shares_that_it_has_alone():
    terms, target, source = random_terms()
    found = covariance_shares_by_sample(terms, target, source)
    for sample in range(3):
        one = slice(sample, sample + 1)
        alone = ShareSums().update(terms[:, :, one], target[one], source[one]).result().covariance
        torch.testing.assert_close(found[sample], alone)
    assert found[3].isnan().all()  # one source position: nothing varies


def test_what_stands_at_padding_is_not_read():
    terms, target, source = random_terms()
    spoilt = terms.masked_fill(~(target[:, :, None] & source[:, None, :]), torch.nan)
    expected = covariance_shares_by_sample(terms, target, source)
    torch.testing.assert_close(covariance_shares_by_sample(spoilt, target, source), expected, equal_nan=True)


def test_each_sample_is_rebuilt_as_well_as_it_is_alone():
    terms, target, source = random_terms()
    for name in ("temporal_only", "no_residual"):
        found = similarity_by_sample(terms, target, source, SUBSETS[name])
        for sample in range(3):
            one = slice(sample, sample + 1)
            sums = SubstitutionSums().update(terms[:, :, one], target[one], source[one])
            torch.testing.assert_close(float(found[sample]), sums.result()[name].similarity)
        assert found[3].isnan()
