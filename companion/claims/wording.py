"""Claims and verdicts in words: whose statement a claim is, what came out, and the numbers behind it.

Two kinds of claim look different to a reader. A *source's* claim is a statement that a paper or a primer
makes, or that this book infers from one of its sentences. All others are the book's *own*: what its sentences
say, what it predicts, and what would change its mind. Which of the two a claim is follows from its file.
"""

import re
from collections import Counter
from collections.abc import Sequence

from companion.claims.estimates import Estimate
from companion.claims.model import Claim
from companion.claims.verdicts import Judgement, Verdict

SOURCES = {"primers": "primer"}  # what a badge calls a source; any other file of claims is of a paper
SIGNS = {
    Verdict.REPRODUCED: "✓",
    Verdict.NOT_REPRODUCED: "✗",
    Verdict.UNDECIDED: "?",
    Verdict.CANNOT_BE_JUDGED: "not testable",
    Verdict.BY_CONSTRUCTION: "not testable",
    Verdict.NOT_RUN: "not run",
    Verdict.CANNOT_BE_RUN: "not testable",
}
UNTESTED = {
    Verdict.CANNOT_BE_JUDGED: "not testable here",
    Verdict.BY_CONSTRUCTION: "true or false by construction",
    Verdict.NOT_RUN: "not run",
    Verdict.CANNOT_BE_RUN: "cannot be run here",
}
OUTCOMES = {
    "said": {
        Verdict.REPRODUCED: "reproduced",
        Verdict.NOT_REPRODUCED: "not reproduced",
        Verdict.UNDECIDED: "too few runs to tell",
    },
    "inferred": {
        Verdict.REPRODUCED: "holds here",
        Verdict.NOT_REPRODUCED: "does not hold here",
        Verdict.UNDECIDED: "too few runs to tell",
    },
    "reported": {
        Verdict.REPRODUCED: "holds here",
        Verdict.NOT_REPRODUCED: "does not hold here",
        Verdict.UNDECIDED: "too few runs to tell",
    },
    "own": {
        Verdict.REPRODUCED: "holds",
        Verdict.NOT_REPRODUCED: "does not hold",
        Verdict.UNDECIDED: "too few runs to tell",
    },
    "falsifier": {
        Verdict.REPRODUCED: "came true",
        Verdict.NOT_REPRODUCED: "did not come true",
        Verdict.UNDECIDED: "too few runs to tell",
    },
}
NEAR_THRESHOLD = "too close to the threshold to tell"
PARTS = {  # what came out for one number of a claim
    Verdict.REPRODUCED: "as stated",
    Verdict.NOT_REPRODUCED: "not as stated",
    Verdict.UNDECIDED: "too few runs to tell",
    Verdict.CANNOT_BE_JUDGED: "not judged",
}
PIECES = {  # of keys of results, where another word than the key's own is clearer
    "AED": "GRU with attention",
    "AO": "attention only",
    "VED": "GRU without attention",
    "temporal_only": "the temporal term alone",
    "input_only": "the input term alone",
    "no_residual": "terms without a residual",
    "one_to_one": "one-to-one",
    "scan": "SCAN",
    "multi30k_en_fr": "Multi30k, English to French",
    "multi30k_en_de": "Multi30k, English to German",
    "multi30k_de_en": "Multi30k, German to English",
    "tatoeba_en_de": "Tatoeba, English to German",
    "tatoeba_en_fr": "Tatoeba, English to French",
    "europarl_de_en": "Europarl, German to English",
    "argmax_agreement": "rows with the same largest weight",
    "spearman": "rank correlation",
    "r2": "variance explained",
    "r2_centred": "variance explained",
    "aed": "GRU with attention",
    "dial": "along the dial",
    "ends": "from one end to the other",
    "by_task": "",
    "by_architecture": "",
    "learned": "networks that have learned",
    "held_out": "held-out sentences",
    "alpha_beta": "attention and probe",
    "alpha_beta_uf": "attention and the probe of a uniform network",
    "alpha_alpha": "attention of two networks",
    "alpha_alpha_frozen": "attention with a frozen probe and the usual one",
    "beta_uf_beta_px": "probes of a uniform network and of a bag of words",
    "delta_beta_uf": "saliency and the probe of a uniform network",
    "agreement_xi": "accuracy where attention first agrees as well",
    "exact_match": "perfect sentences",
    "token_accuracy": "correct words",
    "word_accuracy": "correct words",
    "error_rate": "alignment error rate",
    "across_samples": "over samples",
    "above_chance": "correct words above chance",
    "context_only_input": "with only the input components of the context",
    "alone_context_input": "with the input components of the context alone",
    "context_only_residual": "with only the residuals of the context",
    "decoder_none": "without the decoder's path",
    "split_minus_own": "split shares minus own terms",
    "temporal_unique": "what only the position explains",
    "input_unique": "what only the word explains",
    "early_over_late": "early errors minus late ones",
    "after_error": "after an exchanged word",
    "gain_of_twice": "gain from training twice as long",
    "bleu_of_twice": "BLEU from training twice as long",
    "better_than_diagonal": "better than the diagonal",
    "better_than_ibm_model_1": "better than IBM Model 1",
    "input_after_translation": "input terms after translation, in doublings",
    "temporal_after_translation": "temporal terms after translation, in doublings",
    "on_word_after_translation": "attention on the word after translation, in doublings",
    "with_input_after_translation": "terms with an input part after translation, in doublings",
    "query_temporal": "temporal part of the queries exchanged",
    "keys_residual": "residuals of the keys exchanged",
    "sms_spam": "SMS",
    "sst": "SST",
    "sst_as_text": "SST with labels as in the text",
    "ag_news": "AG News",
    "imdb": "IMDB",
    "twenty_newsgroups": "20 NG",
    "iwslt14_de_en": "IWSLT14, German to English",
    "cho": "Cho’s network",
    "scan_extended": "extended SCAN",
    "previous_state": "previous state as query",
    "own": "own terms",
    "cut": "how much the shortest distance falls",
    "in_place": "attention on its position",
    "good_head": "a good head",
    "all_bad": "bad heads only",
    "encoder_self": "encoder self-attention",
    "right_word": "correct word",
    "begin_right": "correct labels with all attention on the start token",
    "end_right": "correct labels with all attention on the end token",
    "own_mark": "the token on which attention rests",
    "steps_to_learn": "updates to learn",
}
IN_A_CELL = {  # of what tells two numbers of a claim apart, where a narrow cell or its column asks for others
    "AED": "GRU",
    "learned": "learned positions",
    "sinusoidal": "sinusoidal positions",
    "multi30k_en_fr": "captions",
    "multi30k_en_de": "English to German",
    "multi30k_de_en": "German to English",
    "reordering_50": "half may reorder",
    "reordering_100": "all may reorder",
    "sst_as_text": "SST, labels of the text",
    "memory_encoder": "encoder",
    "memory_decoder": "decoder",
    "shortest": "shortest sentences",
    "longest": "longest sentences",
    "exchange": "exchanged",
    "resample": "drawn anew",
    "query": "in the queries",
    "keys": "in the keys",
    "initial": "vector read once",
    "every_step": "read at every step",
    "speed_first": "updates, first words",
    "long_first": "long sentences, first words",
    "long_last": "long sentences, last words",
    "sutskever": "Sutskever’s network",
    "luong": "Luong’s network",
    "bahdanau_over_cho": "Bahdanau minus Cho",
    "luong_over_sutskever": "Luong minus Sutskever",
    "before": "words before",
    "after": "words after",
    "summary": "summarising",
    "transformer": "Transformer",
    "begin_right": "start token",
    "end_right": "end token",
    "sample": "samples",
    "permutation": "permutations",
    "mixture": "mixtures",
    "train": "training",
    "output": "next word",
    "right": "of the translation",
    "aligned": "of attention",
    "drawn": "",
    "away": "",
    "join": "joining word",
    "opening": "opening word",
    "says_shown": "word shown",
    "says_left_out": "word left out",
    "coded": "LSTM with codes",
    "coded_not_recurrent": "LSTM minus no recurrence",
    "doublings": "",
    "doublings_less": "",
    "weight": "good head",
    "best_other": "best other head",
    "keyword_over_next": "keyword minus next",
    "next_over_mean": "next minus mean",
    "last_over_keyword": "last minus keyword",
    "last_over_next": "last minus next",
    "keyword_over_last": "keyword minus last",
    "probe_second": "second position",
    "probe_third": "third position",
    "optimal_second": "second position",
    "optimal_third": "third position",
}
NUMBERED = {  # patterns of pieces with a number, and what they say
    r"reordering_(\d+)": r"\1 % of sentences may reorder",
    r"width_(\d+)": r"width \1",
    r"length_(\d+)": r"length \1",
    r"layer_(\d+)": r"layer \1",
    r"times_(\d+)": r"\1 times the length",
    r"(\d+)p(\d+)": r"\1.\2",
}


def source_of(claim: Claim) -> str:
    """Return ``"paper"`` or ``"primer"`` for a source's claim, and an empty text for the book's own."""
    if claim.kind != "statement" or claim.origin == "predicted":
        return ""
    return SOURCES.get(claim.paper, "paper")


def source_label(claim: Claim) -> str:
    """Return what a badge calls a claim's source, such as ``paper, inferred``; empty for the book's own."""
    source = source_of(claim)
    if source and claim.origin in ("inferred", "reported"):
        return f"{source}, {claim.origin}"
    return source


def outcome(claim: Claim, verdict: Verdict) -> str:
    """Return a verdict in words that fit the claim: nothing is *reproduced* that nobody published.

    A claim that a source makes is reproduced or not. One inferred from a source, or reported of it, holds
    here or does not. What would change the book's mind comes true or does not, and a sentence of the book's
    own holds or does not.
    """
    if verdict in UNTESTED:
        return UNTESTED[verdict]
    return OUTCOMES[_kind_of(claim)][verdict]


def outcome_of(claim: Claim, judgement: Judgement) -> str:
    """Return what came out, as :func:`outcome` does; of an open verdict it tells two reasons apart.

    Where every interval that leaves it open excludes zero, there is an effect, and what is open is whether
    it is as large as the claim says.
    """
    if _is_near_threshold(claim, judgement):
        return NEAR_THRESHOLD
    return outcome(claim, judgement.verdict)


def _is_near_threshold(claim: Claim, judgement: Judgement) -> bool:
    if judgement.verdict is not Verdict.UNDECIDED or claim.judge.is_tolerance:
        return False
    ends = [
        judgement.evidence[label].ends if judgement.evidence[label].has_interval else (0, 0)
        for label, part in judgement.parts.items()
        if part is Verdict.UNDECIDED
    ]
    return bool(ends) and all(low > 0 or high < 0 for low, high in ends)


def _kind_of(claim: Claim) -> str:
    if source_of(claim):
        return claim.origin
    return "falsifier" if claim.kind == "falsifier" else "own"


def whose(claim: Claim) -> str:
    """Return who makes a claim, as the beginning of a sentence that quotes it."""
    source = source_of(claim)
    if claim.kind == "falsifier":
        return "What would change our mind"
    if not source:
        return "Our prediction" if claim.origin == "predicted" else "Our sentence"
    if claim.origin == "inferred":
        return f"Inferred from the {source} ({claim.place})"
    if claim.origin == "reported":
        return f"Reported of the {source} by others ({claim.place})"
    return f"The {source} says ({claim.place})"


def brief(value: float, like: float | None = None) -> str:
    """Return a number as a reader needs it beside a sentence: two decimals, or as many digits as it takes.

    An end of an interval has as many decimals as the number that it is ``like``.

    >>> [brief(value) for value in (0.5714, -0.0314, 61.24, 1274882.0)]
    ['0.57', '−0.031', '61', '1,274,882']
    >>> brief(20.03, like=9.887)
    '20.03'
    """
    model = value if like is None else like
    is_count = like is None and value == round(value) and abs(value) >= 2
    decimals = 3 if 0 < abs(model) < 0.1 else 2
    if is_count or abs(model) >= 10:
        decimals = 0
    return f"{value:z,.{decimals}f}".replace("-", "−")


def number(estimate: Estimate) -> str:
    """Return one estimate with its interval, without the number of runs."""
    if not estimate.defined:
        return "undefined"
    if estimate.at_least:
        return f"at least {brief(estimate.ends[0])}"
    if not estimate.has_interval or estimate.low == estimate.high:
        return brief(estimate.value)
    value, (low, high) = estimate.value, estimate.ends
    like = None if all(part == round(part) for part in (value, low, high)) else value
    return f"{brief(value, like)} [{brief(low, like)}, {brief(high, like)}]"


def evidence(judgement: Judgement) -> str:
    """Return the numbers behind a judgement in one short text, such as ``0.57 [0.53, 0.61], n = 10``.

    Two numbers are named, more are given by their range. No verdict is in it.
    """
    estimates = list(judgement.evidence.values())
    defined = [estimate for estimate in estimates if estimate.defined]
    if not defined:
        return "no number" if not estimates else "undefined"
    if len(estimates) == 1:
        text = number(defined[0])
    elif len(defined) == 2:
        text = " and ".join(brief(estimate.value) for estimate in defined)
    else:
        values = [estimate.value for estimate in defined]
        text = f"{len(defined)} numbers, {brief(min(values))} to {brief(max(values))}"
    counts = sorted({estimate.n for estimate in defined if estimate.n is not None})
    if not counts:
        return text
    if len(counts) == 1:
        return f"{text}, n = {counts[0]:,}"
    return f"{text}, n = {counts[0]:,} to {counts[-1]:,}"


def evidence_in_words(claim: Claim, judgement: Judgement, phrase: str) -> str:
    """Return a phrase filled in with the numbers behind a judgement; where one is missing, those there are.

    A number alone has its interval; several do not. For the placeholders see
    :class:`companion.claims.model.Central`.
    """
    estimates = list(judgement.evidence.values())
    if not estimates or not all(estimate.defined for estimate in estimates):
        return evidence(judgement)
    if len(estimates) == 1:
        numbers = [number(estimates[0])]
    else:
        numbers = [brief(estimate.value) for estimate in estimates]
    negated = [brief(-estimate.value) for estimate in estimates]
    factors = [f"{2 ** abs(estimate.value):.2g}" for estimate in estimates] if "{factors" in phrase else []
    needed = claim.judged_as.replace(", ", " and ")
    return phrase.format(*numbers, negated=negated, factors=factors, needed=needed)


def key_in_words(key: str) -> str:
    """Return a key of a result as a reader would say it.

    >>> key_in_words("one_to_one.AED.substitution.no_residual.similarity")
    'one-to-one, GRU with attention: substitution, terms without a residual, similarity'
    """
    if " − " in key:
        return " minus ".join(key_in_words(part) for part in key.split(" − "))
    pieces = re.sub(r"by_mark\.(\d+)", r"reordering_\1", key).split(".")  # the same setting of the dial
    words = [piece_in_words(piece) for piece in pieces]
    conditions = [word for piece, word in zip(pieces, words, strict=True) if word and _is_condition(piece)]
    quantities = [
        word for piece, word in zip(pieces, words, strict=True) if word and not _is_condition(piece)
    ]
    return ": ".join(filter(None, [", ".join(conditions), ", ".join(quantities)]))


def distinguished(first: str, second: str) -> tuple[str, str]:
    """Return in what two keys of one claim differ, in few words for the cell of a table.

    >>> distinguished("scan.AED.encoder.gain", "scan.AED.decoder.gain")
    ('encoder', 'decoder')
    >>> distinguished("learned.dial.AED.input_own", "learned.dial.AED.ends.input_own")
    ('rank correlation', 'last minus first')
    """
    pieces, others = first.split("."), second.split(".")
    if len(pieces) == len(others):
        different = [pair for pair in zip(pieces, others, strict=True) if pair[0] != pair[1]]
        return _in_few_words([piece for piece, _ in different]), _in_few_words(
            [other for _, other in different]
        )
    if set(others) - set(pieces) == {"ends"}:
        return "rank correlation", "last minus first"
    return key_in_words(first), key_in_words(second)


def _in_few_words(pieces: Sequence[str]) -> str:
    return ", ".join(filter(None, [IN_A_CELL.get(piece, piece_in_words(piece)) for piece in pieces]))


def piece_in_words(piece: str) -> str:
    """Return one piece of a key as a reader would say it."""
    if piece in PIECES:
        return PIECES[piece]
    for pattern, words in NUMBERED.items():
        if re.fullmatch(pattern, piece):
            return re.sub(pattern, words, piece)
    return re.sub("_(?:less|minus)_", " minus ", piece).replace("_", " ")


def _is_condition(piece: str) -> bool:
    """Return True for a piece of a key that names a task, a data set or a kind of network."""
    networks = piece in ("AED", "AO", "VED", "gru", "lstm", "vanilla", "ugrnn")
    tasks = piece in (
        "one_to_one",
        "scan",
        "scan_extended",
        "reversal",
        "permutation",
        "sst",
        "imdb",
        "ag_news",
        "sms_spam",
        "sst_as_text",
        "twenty_newsgroups",
        "amazon",
        "yelp",
        "number_words",
        "held_out",
        "cho",
        "copying_sample",
        "copying_permutation",
        "sorting",
        "counting",
        "selective_copying",
        "lookup",
        "addition",
    )
    texts = piece.startswith(("multi30k", "tatoeba", "europarl", "reordering", "iwslt14"))
    return networks or tasks or texts


def judged_in_words(claim: Claim) -> str:
    """Return how a claim is judged, as a sentence; of a claim that is not judged, why."""
    if claim.judge is None:
        return claim.not_run or claim.cannot_be_run
    names = [key_in_words(key) for key in claim.keys]
    if claim.judge.contrast:
        least = claim.smallest_effect[0].value if claim.smallest_effect else 0
        margin = f" by more than {least:g}" if least else ""
        return f"“{names[0]}” has to be above “{names[1]}”{margin}."
    if len(names) == 1:
        return f"“{names[0]}” has to be {claim.judged_as}."
    of_which = "one" if claim.enough == "any" else "each"
    return f"{of_which.capitalize()} of these {len(names)} has to be {claim.judged_as}: {_listed(names)}."


def why_in_words(judgement: Judgement) -> str:
    """Return why a verdict is what it is: what came out for how many numbers, and what else there is to say.

    >>> why_in_words(Judgement(Verdict.NOT_REPRODUCED, {}, parts={"x": Verdict.NOT_REPRODUCED}))
    'its number is not as stated'
    """
    counts = Counter(judgement.parts.values())
    total = len(judgement.parts)
    if not total or judgement.verdict in UNTESTED:
        return judgement.reason
    if total == 1:
        text = f"its number is {PARTS[next(iter(counts))]}"
        if judgement.verdict is Verdict.UNDECIDED:
            text = "its interval has values on both sides, or the runs are too few for one"
    else:
        text = f"of its {total} numbers, " + ", ".join(
            f"{counts[part]} {'is' if counts[part] == 1 else 'are'} {words}"
            for part, words in PARTS.items()
            if counts[part]
        )
    return "; ".join(filter(None, [text, judgement.reason]))


def _listed(names: Sequence[str], longest: int = 6) -> str:
    shown = "; ".join(f"“{name}”" for name in names[:longest])
    return shown if len(names) <= longest else f"{shown} and {len(names) - longest} more"


def decided_after_looking(claim: Claim) -> bool:
    """Return True where a smallest effect of the claim was set when its results were known."""
    return any(getattr(effect, "seen_before", False) for effect in claim.smallest_effect)
