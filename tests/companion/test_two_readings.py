"""Which reading of a printed name comes nearer to its numbers, from rows set by hand."""

from attnlib.companion.sentences.two_readings import readings_sentences
from companion.claims import Claim, ClaimVerdict, Estimate, Judgement, Tolerance, Verdict
from companion.claims.published import Published, Reference


def row(data, quantity, printed, ours=None, table="5"):
    key = f"{data}.validation.{quantity}"
    published = Published(printed, Reference(table=table, dataset="SST", quantity=quantity))
    claim = Claim(
        id="printed", paper="p", place="Table", says="It.", published=published, experiment="agreement",
        keys=(key,), judge=Tolerance(absolute=5, published=printed), profiles=("paper",), number=True,
    )  # fmt: skip
    evidence = {} if ours is None else {key: Estimate(ours)}
    return ClaimVerdict(claim, "paper", Judgement(Verdict.PARTLY, evidence))


def test_the_mean_distance_is_over_numbers_that_both_have():
    rows = [
        row("sst", "a", 20, 21), row("sst_as_text", "a", 20, 26),
        row("sst", "b", 80, 77), row("sst_as_text", "b", 80, 82),
        row("sst", "c", 50, 10), row("sst_as_text", "c", 50),
        row("sst", "d", 7, 7), row("sst_as_text", "d", 7, 7),
    ]  # fmt: skip
    assert readings_sentences(rows) == (
        "* **SST.** Ours are 1.3 away from 3 printed numbers on average under the filter of labels that "
        "gives Table 9's counts, 2.7 under the text's filter; nearer under the first are 1 of them, under "
        "the second 1."
    )


def test_a_number_that_is_printed_twice_counts_once_with_most_digits():
    twice = [row(data, "a", 20, 23, table="2") for data in ("sst", "sst_as_text")]
    exact = [row("sst", "a", 21.5, 23), row("sst_as_text", "a", 21.5, 25)]
    words = readings_sentences(twice + exact)
    assert "1.5 away from 1 printed numbers" in words
    assert "3.5 under the text's filter" in words


def test_two_probes_count_once_where_they_are_printed_by_accuracy_and_by_bleu():
    """The proxy has no BLEU, so the pair is the same; its ξ is not."""

    def rows(*quantities):
        return [
            row(data, quantity, printed, ours)
            for quantity, printed, distance in quantities
            for data, ours in (
                ("multi30k_en_de", printed + distance),
                ("multi30k_de_en", printed + 2 * distance),
            )
        ]

    once = rows(
        ("accuracy.beta_uf_beta_px.agreement_optimistic", 34.4, 6),
        ("accuracy.alpha_beta.agreement_optimistic", 40, 1),
        ("bleu.alpha_beta.agreement_optimistic", 40, 2),
        ("bleu.beta_uf_beta_px.agreement_xi_optimistic", 11.4, 3),
    )
    again = rows(
        ("bleu.beta_uf_beta_px.agreement_optimistic", 34.4, 6),
        ("bleu.beta_uf_beta_px.kendall_optimistic", 28, 6),
    )
    assert "3.0 away from 4 printed numbers" in readings_sentences(once)
    assert readings_sentences(once + again) == readings_sentences(once)


def test_a_name_with_one_reading_is_left_out():
    assert readings_sentences([row("sst", "a", 20, 21), row("multi30k_en_de", "a", 20, 30)]) == ""
