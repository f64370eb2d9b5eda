"""What a checkpoint writes is what its model's own ``generate`` writes, and is traced as it was written."""

import pytest
import torch

from attnlib import Checkpoint, TokenBatch, analyse
from attnlib.errors import BadInput, UnknownName
from attnlib.report.texts import Sentences
from tests.situations.builders import (
    BEGIN,
    END,
    PAD,
    SOURCE,
    TARGET,
    bart,
    drawn,
    joined,
    made,
    reader,
    t5,
    tokenizer_of,
    transformers,
    writer,
)

LONGEST = 9
TOKENIZER = tokenizer_of([*SOURCE, *TARGET])


def checkpoint_of(make):
    return Checkpoint("m", made(make), TOKENIZER)


def sources():
    ids = TOKENIZER(text=SOURCE[:3])["input_ids"]
    return TokenBatch.of_rows(ids, ids)


def generated(checkpoint, **options):
    batch = sources()
    return checkpoint.model.generate(
        batch.source,
        attention_mask=batch.source_mask.long(),
        max_length=LONGEST + 1,
        return_dict_in_generate=True,
        **options,
    )


def rows(batch):
    return [target[mask].tolist() for target, mask in zip(batch.target, batch.target_mask, strict=True)]


def up_to_end(written, ends=(END,)):
    """Rows of generate without the start mark, up to and with the first end mark."""
    texts = []
    for row in written.tolist():
        text = row[1:]
        places = [place for place, token in enumerate(text) if token in ends]
        texts.append(text[: places[0] + 1] if places else text)
    return texts


def with_likely_end(model):
    """Its end mark is likely enough that some sentences end before the longest."""
    with torch.no_grad():
        model.final_logits_bias[0, END] = 1.5
    return model


FAMILIES = [
    pytest.param(lambda: with_likely_end(bart("Bart")), id="BART"),
    pytest.param(lambda: bart("Marian", "MTModel"), id="Marian"),
    pytest.param(lambda: t5("T5"), id="T5"),
    pytest.param(lambda: joined(reader("Bert"), writer("Bert")), id="two BERTs"),
]
GENERATIONS = [
    pytest.param(None, {"num_beams": 1, "do_sample": False}, id="greedy"),
    pytest.param({"num_beams": 4}, {"num_beams": 4, "do_sample": False}, id="beams"),
    pytest.param(
        {"num_beams": 3, "length_penalty": 0.2, "early_stopping": True},
        {"num_beams": 3, "length_penalty": 0.2, "early_stopping": True, "do_sample": False},
        id="beams with a penalty",
    ),
    pytest.param(
        {"repetition_penalty": 2.0}, {"repetition_penalty": 2.0, "num_beams": 1}, id="no repetition"
    ),
    pytest.param("config", {}, id="as the config says"),
]


@pytest.mark.parametrize(("generation", "options"), GENERATIONS)
@pytest.mark.parametrize("make", FAMILIES)
def test_what_is_written_is_what_the_model_generates(make, generation, options):
    checkpoint = checkpoint_of(make)
    if generation == "config":
        checkpoint.model.generation_config.num_beams = 2
    written = checkpoint.write(sources(), LONGEST, generation)
    assert rows(written) == up_to_end(generated(checkpoint, **options).sequences)


def test_attention_is_that_of_the_beam_that_won():
    checkpoint = checkpoint_of(lambda: bart("Bart"))
    output = generated(checkpoint, num_beams=3, do_sample=False, output_attentions=True)
    trace = checkpoint.adapter().trace(checkpoint.write(sources(), LONGEST, {"num_beams": 3}))
    last_layer = trace.attentions[-1]
    for step, of_layers in enumerate(output.cross_attentions):
        beams = output.beam_indices[:, step].clamp(min=0)  # (batch,)
        weights = of_layers[-1][beams, :, 0]  # (batch, heads, source)
        for sample in range(3):
            if trace.target_mask[sample, step] and trace.source_mask[sample].all():
                torch.testing.assert_close(last_layer.weights[sample, :, step], weights[sample])


SAMPLING = {"do_sample": True, "temperature": 2.0, "seed": 3}


def test_sampling_writes_the_same_whenever_a_batch_is_read():
    checkpoint = checkpoint_of(lambda: bart("Bart"))
    first = checkpoint.write(sources(), LONGEST, SAMPLING)
    torch.rand(3)
    assert rows(checkpoint.write(sources(), LONGEST, SAMPLING)) == rows(first)


def test_another_seed_writes_something_else():
    checkpoint = checkpoint_of(lambda: bart("Bart"))
    first = checkpoint.write(sources(), LONGEST, SAMPLING)
    assert rows(checkpoint.write(sources(), LONGEST, SAMPLING | {"seed": 4})) != rows(first)


def test_sampling_leaves_the_random_state_alone():
    checkpoint = checkpoint_of(lambda: bart("Bart"))
    before = torch.get_rng_state()
    checkpoint.write(sources(), LONGEST, SAMPLING)
    assert torch.equal(torch.get_rng_state(), before)


REFUSED = [
    pytest.param({"max_length": 3}, "longest", BadInput, id="length"),
    pytest.param({"num_return_sequences": 2}, "best sentence", BadInput, id="several sentences"),
    pytest.param({"num_beam": 2}, "num_beams", UnknownName, id="misspelt"),
    pytest.param("beams", "config", BadInput, id="a word"),
    pytest.param({"num_beams": 0}, "cannot write", BadInput, id="no beams"),
    pytest.param({"forced_eos_token_id": [None]}, "cannot write", BadInput, id="a list without a number"),
]


@pytest.mark.parametrize(("generation", "named", "error"), REFUSED)
def test_options_that_cannot_be_followed_are_refused(generation, named, error):
    with pytest.raises(error, match=named):
        checkpoint_of(lambda: bart("Bart")).write(sources(), LONGEST, generation)


def test_options_of_writing_are_refused_where_a_target_is_given():
    text = Sentences(SOURCE, TARGET)
    with pytest.raises(BadInput, match="leave it or the target out"):
        checkpoint_of(lambda: bart("Bart")).stream(text, generation={"num_beams": 2})


@pytest.mark.slow
def test_an_analysis_says_with_which_options_a_target_was_written():
    checkpoint = checkpoint_of(lambda: bart("Bart"))
    analysis = analyse(checkpoint, SOURCE * 4, generation={"num_beams": 2}, longest=LONGEST, probed=0)
    assert analysis.made["options"]["generation"] == {"num_beams": 2}


# Start and end, by generation config, then config, then tokenizer.


def two_berts(**marks):
    """As tutorials make them: marks are set on the config, after its model was made."""
    model = joined(reader("Bert"), writer("Bert"))
    for name in ("decoder_start_token_id", "eos_token_id", "pad_token_id"):
        setattr(model.config, name, marks.get(name))
        setattr(model.generation_config, name, None)
    with torch.no_grad():
        model.decoder.cls.predictions.bias[END] += 9
    return drawn(model)


def test_the_end_may_be_in_the_config_alone():
    checkpoint = checkpoint_of(
        lambda: two_berts(decoder_start_token_id=BEGIN, eos_token_id=END, pad_token_id=PAD)
    )
    assert rows(checkpoint.write(sources(), LONGEST)) == [[END]] * 3


def test_the_end_may_be_in_the_tokenizer_alone():
    assert rows(checkpoint_of(two_berts).write(sources(), LONGEST)) == [[END]] * 3


def test_the_start_may_be_in_the_tokenizer_alone():
    assert checkpoint_of(two_berts).write(sources(), LONGEST).read[:, 0].tolist() == [BEGIN] * 3


def test_the_start_of_the_tokenizer_is_read_under_teacher_forcing_too():
    assert checkpoint_of(two_berts).adapter().trace(sources()).target_tokens[:, 0].tolist() == [BEGIN] * 3


def test_a_first_mark_of_the_tokenizer_is_not_put_before_what_is_written():
    """BERT's tokenizer begins a target with [CLS], which is no language."""
    words = sorted({word for line in (*SOURCE, *TARGET) for word in line.lower().split()})
    vocabulary = {piece: n for n, piece in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])}
    model = made(lambda: joined(reader("Bert"), writer("Bert"), decoder_start_token_id=2, eos_token_id=3))
    with torch.no_grad():
        model.decoder.cls.predictions.bias[3] += 9
    model.generation_config.update(decoder_start_token_id=2, eos_token_id=3)
    checkpoint = Checkpoint("m", model, transformers.BertTokenizer(vocab=vocabulary))
    written = checkpoint.write(sources(), LONGEST)
    assert written.read[:, 0].tolist() == [2] * 3
    assert rows(written) == [[3]] * 3


@pytest.mark.parametrize("name", ["Bart", "T5"])
def test_writing_stops_at_the_last_position(name):
    make = (lambda: bart("Bart", max_position_embeddings=6)) if name == "Bart" else (lambda: t5("T5"))
    checkpoint = checkpoint_of(make)
    most = {"Bart": 6, "T5": 12}[name]
    assert max(map(len, rows(checkpoint.write(sources(), 12)))) <= most


# Positions, before any work.


def test_how_many_positions_there_are_is_said():
    checkpoint = checkpoint_of(lambda: bart("Bart", max_position_embeddings=4))
    assert "4 pieces of a source and 4 pieces of a target" in checkpoint.shortened(128)


def test_longer_sentences_are_cut_at_the_last_position():
    checkpoint = checkpoint_of(lambda: bart("Bart", max_position_embeddings=4))
    stream = checkpoint.stream(Sentences(SOURCE, TARGET), probed=0)
    trace = stream.trace(stream.first())
    assert trace.source_tokens.shape[1] == trace.target_tokens.shape[1] == 4
    assert stream.losses(stream.first()).cut == len(SOURCE)


def test_each_side_is_cut_at_its_own_positions():
    checkpoint = checkpoint_of(
        lambda: joined(reader("Bert"), writer("Bert", max_position_embeddings=3), eos_token_id=END)
    )
    stream = checkpoint.stream(Sentences(SOURCE, TARGET), probed=0)
    trace = stream.trace(stream.first())
    assert (trace.source_tokens.shape[1], trace.target_tokens.shape[1]) == (5, 3)


def test_nothing_is_said_where_all_fits():
    assert checkpoint_of(lambda: t5("T5")).shortened(128) == ""


# Several references.


def test_further_references_raise_bleu():
    pytest.importorskip("sacrebleu")
    checkpoint = checkpoint_of(lambda: bart("Bart"))
    text = Sentences(SOURCE, TARGET)
    batches = list(checkpoint.stream(text, probed=0).batches())
    (batch,) = batches
    written = checkpoint._texts(rows(checkpoint.write(batch.tokens, batch.longest)))
    alone, with_written = checkpoint.bleu(batches), checkpoint.bleu(batches, references=[Sentences(written)])
    assert with_written["bleu"] == pytest.approx(100)
    assert alone["bleu"] < 50
