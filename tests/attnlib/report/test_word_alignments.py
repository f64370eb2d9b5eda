"""Word alignments of checkpoints and streams, compared with loops over the attention of the adapter."""

import re
from dataclasses import replace

import pytest
import torch

from attnlib import Stream, TokenBatch, align, zoo
from attnlib.alignment import Gold
from attnlib.alignment.words import split_words
from attnlib.analysis.learned import SCORED, Learned, not_learned
from attnlib.errors import BadInput
from attnlib.report import Checkpoint, ParallelText
from attnlib.report.attended_pairs import CheckpointPasses
from attnlib.report.texts import Sentences
from tests.attnlib.adapters import single_stacks
from tests.attnlib.adapters.adapter_builders import model_of
from tests.attnlib.analysis import builders as toys
from tests.attnlib.analysis.builders import SOURCE, TARGET

transformers = pytest.importorskip("transformers", reason="checkpoints are those of transformers")
tokenizers = pytest.importorskip("tokenizers", reason="it comes with transformers")
pytestmark = pytest.mark.slow
SPECIAL = ["<pad>", "</s>", "<unk>"]
LINES = [*SOURCE, *TARGET]


def tokenizer_of_pieces(marking):
    """Few pieces a word, marked as sentencepiece or byte-level BPE marks them; an end mark behind."""
    if marking == "Ġ":
        split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = []
    else:
        split = tokenizers.pre_tokenizers.Metaspace()
        alphabet = ["▁"]
    model = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    model.pre_tokenizer = split
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=58, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    lines = [re.sub(r"<.*>", "x", line) for line in LINES]  # few letters: the model has 60 embeddings
    model.train_from_iterator(lines, trainer)
    model.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, **names)


def checkpoint_of(tokenizer, **settings):
    model = model_of("T5", vocab_size=60, d_model=16, d_kv=4, d_ff=16, num_heads=2).eval()
    return Checkpoint("tiny", model, tokenizer, **settings)


@pytest.fixture(scope="module", params=["▁", "Ġ"])
def pieces(request):
    return checkpoint_of(tokenizer_of_pieces(request.param))


@pytest.fixture(scope="module")
def words():
    """A piece a word."""
    return checkpoint_of(toys.tokenizer_of(LINES))


SOURCES = ["the red dog runs .", "the red dog sleeps here .", "a"]
TARGETS = ["le chien rouge court .", "le chien rouge dort ici .", "un"]


def links_by_loops(checkpoint, source, target, *, layer, head, step):
    """Argmax of a head over words that are counted off piece by piece; ``step`` is 0 to write, 1 to read."""
    ids = [checkpoint.tokenizer(text)["input_ids"] for text in (source, target)]
    trace = checkpoint.adapter().trace(TokenBatch.of_rows([ids[0]], [ids[1]]))
    weights = trace.layers("cross")[layer].weights[0, head].tolist()
    of_piece = []
    for text, row in zip((source, target), ids, strict=True):
        numbers, n_letters = [], 0
        ends = torch.tensor([len(word) for word in text.split()]).cumsum(0).tolist()
        for token in row[:-1]:
            piece = checkpoint.tokenizer.convert_ids_to_tokens(token)
            letters = piece.removeprefix("▁").removeprefix("Ġ")
            numbers.append(sum(end <= n_letters for end in ends))
            n_letters += len(letters)
        assert n_letters == ends[-1]
        of_piece.append(numbers)
    links = []
    for word in range(len(target.split())):
        steps = [place + step for place, number in enumerate(of_piece[1]) if number == word]
        sums = [0.0] * len(source.split())
        for row in steps:
            for place, number in enumerate(of_piece[0]):
                sums[number] += weights[row][place] / len(steps)
        links.append((sums.index(max(sums)), word))
    return tuple(sorted(links))


@pytest.mark.parametrize(("shift", "step"), [("write", 0), ("read", 1)])
@pytest.mark.parametrize(("layer", "head"), [(0, 1), (1, 0)])
def test_links_of_a_checkpoint_are_what_loops_find(pieces, layer, head, shift, step):
    alignment = align(pieces, SOURCES, TARGETS, layer=layer, head=head, shift=shift)
    expected = [
        links_by_loops(pieces, source, target, layer=layer, head=head, step=step)
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    assert list(alignment.links) == expected


def test_a_tokenizer_that_does_not_say_where_pieces_are_gives_the_same_links(pieces, monkeypatch):
    expected = align(pieces, SOURCES, TARGETS, layer=0, head=0).to_pharaoh()
    monkeypatch.setattr(CheckpointPasses, "_spans", lambda *_: None)
    assert align(pieces, SOURCES, TARGETS, layer=0, head=0).to_pharaoh() == expected


def test_pieces_that_marks_join_to_other_words_leave_their_pair_out(pieces, monkeypatch):
    """White space of a kind that the tokenizer takes for a letter."""
    monkeypatch.setattr(CheckpointPasses, "_spans", lambda *_: None)
    alignment = align(pieces, ["a\u2003b", "the dog"], ["un", "le chien"], layer=0, head=0)
    assert (alignment.links[0], alignment.left_out) == ((), {0})
    assert "other words" in " ".join(alignment.notes)


def test_an_empty_line_keeps_its_place(words):
    alignment = align(words, ["", *SOURCES], ["le", *TARGETS], layer=0, head=0)
    assert alignment.to_pharaoh() == "\n" + align(words, SOURCES, TARGETS, layer=0, head=0).to_pharaoh()
    assert "1 of 4 lines have an empty side" in " ".join(alignment.notes)


def test_batches_make_no_difference(words):
    in_batches, all_at_once = (
        align(words, SOURCE, TARGET, layer=1, head=1, batch_size=size) for size in (1, 24)
    )
    assert in_batches.to_pharaoh() == all_at_once.to_pharaoh()


@pytest.mark.parametrize("prefix", ["translate : ", "translate :"])
def test_what_is_put_before_a_line_is_no_word_of_it(pieces, prefix, monkeypatch):
    before = checkpoint_of(pieces.tokenizer, prefix=prefix)
    passes = CheckpointPasses(checkpoint=before, text=Sentences(["the dog"], ["le chien"]))
    (pair,) = passes.pairs([0], lambda _: None)
    n_before = sum(number == -1 for number in pair.source.of_piece) - 1  # but for the end mark
    assert pair.source.words == ("the", "dog")
    assert n_before >= 4  # 'translate' is of several pieces here
    assert set(pair.source.of_piece) == {-1, 0, 1}


def test_a_line_that_is_cut_off_has_no_links_for_its_last_words(words):
    alignment = align(words, SOURCES[:1], TARGETS[:1], layer=0, head=0, longest=3)
    assert {target for _, target in alignment.links[0]} == {0, 1}
    assert "cut off" in " ".join(alignment.notes)


def test_what_a_model_writes_is_aligned_as_if_it_were_given(words):
    written = align(words, SOURCES, layer=0, head=0, longest=7)
    lines = [" ".join(line) for line in written.target]
    given = align(words, SOURCES, lines, layer=0, head=0, longest=8)  # with room for an end mark
    assert written.to_pharaoh() == given.to_pharaoh()


def test_both_directions_are_those_of_two_calls(words):
    forward = align(words, SOURCE, TARGET, layer=0, head=0)
    backward = align(words, TARGET, SOURCE, layer=0, head=0)
    both = align(words, SOURCE, TARGET, layer=0, head=0, reverse=words, method="union")
    assert both.links == forward.symmetrised(backward, "union").links
    for pair, links in enumerate(both.links):
        assert set(links) == {*forward.links[pair], *((t, s) for s, t in backward.links[pair])}


def test_a_link_of_both_directions_has_the_larger_weight(words):
    forward = align(words, SOURCE, TARGET, layer=0, head=0)
    backward = align(words, TARGET, SOURCE, layer=0, head=0)
    weights = [
        dict(zip(alignment.links[0], alignment.weights[0], strict=True)) for alignment in (forward, backward)
    ]
    for row in forward.symmetrised(backward, "union").to_frame().query("pair == 0").to_dict("records"):
        known = [weights[0].get((row["source"], row["target"]))]
        known.append(weights[1].get((row["target"], row["source"])))
        assert row["weight"] == max(weight for weight in known if weight is not None)


# Which head.


def test_gold_links_choose_the_head_that_made_them(words):
    links = align(words, SOURCE, TARGET, layer=1, head=0).links
    alignment = align(words, SOURCE, TARGET, gold=[Gold(frozenset(line)) for line in links])
    assert alignment.method == "layer 1, head 0"
    (row,) = (row for row in alignment.scores if row["chosen"])
    assert (row["layer"], row["head"], row["error_rate"], row["recall"]) == (1, 0, 0, 1)


def test_every_head_is_scored(words):
    alignment = align(words, SOURCE, TARGET, gold=["0-0"] * len(SOURCE))
    methods = [row["method"] for row in alignment.scores]
    assert methods.count("head") == 4


def test_the_mean_over_heads_of_every_layer_is_scored(words):
    alignment = align(words, SOURCE, TARGET, gold=["0-0"] * len(SOURCE))
    methods = [row["method"] for row in alignment.scores]
    assert methods.count("mean over heads") == 3


def test_what_sees_no_network_is_scored(words):
    alignment = align(words, SOURCE, TARGET, gold=["0-0"] * len(SOURCE))
    methods = [row["method"] for row in alignment.scores]
    assert methods[-3:] == ["best head of the other half", "IBM Model 1", "diagonal"]


def test_scores_of_both_directions_are_those_of_symmetrised_links(words):
    gold = ["0-0 1-2 2-1 3p3"] * len(SOURCE)
    alignment = align(words, SOURCE, TARGET, layer=0, head=0, gold=gold, reverse=words, method="union")
    (row,) = (row for row in alignment.scores if row["chosen"])
    assert (row["direction"], row["method"]) == ("both", "union")
    assert row["error_rate"] == alignment.score(gold).error_rate


def test_without_gold_links_the_head_agrees_with_ibm_model_1(words):
    alignment = align(words, SOURCE, TARGET)
    assert alignment.scores == ()
    assert "IBM Model 1" in alignment.notes[0]
    assert alignment.notes[0].startswith(alignment.method)


def test_a_head_is_chosen_on_the_first_pairs_of_a_long_text(words, monkeypatch):
    monkeypatch.setattr("attnlib.report.linked_text.CHOSEN_ON", 5)
    alignment = align(words, SOURCE, TARGET, batch_size=3)
    layer, head = map(int, re.findall(r"\d+", alignment.method))
    assert "compared on 5" in alignment.notes[0]
    assert alignment.links == align(words, SOURCE, TARGET, layer=layer, head=head).links


def test_a_text_that_is_read_whole_is_read_once(words):
    stages = []
    alignment = align(words, SOURCE, TARGET, progress=lambda stage, _: stages.append(stage))
    layer, head = map(int, re.findall(r"\d+", alignment.method))
    assert stages == ["choose"]
    assert alignment.links == align(words, SOURCE, TARGET, layer=layer, head=head).links


def test_gold_links_are_looked_at_before_the_model_reads(words, monkeypatch):
    monkeypatch.setattr(CheckpointPasses, "pairs", lambda *_: pytest.fail("the model was run"))
    with pytest.raises(BadInput, match="for a text of 24"):
        align(words, SOURCE, TARGET, gold=["0-0"])


@pytest.mark.parametrize(
    ("outside", "note"),
    [
        pytest.param([2], "1 gold link leads outside its sentence and is left out (line 3)", id="one"),
        pytest.param(
            [2, 4], "2 gold links lead outside their sentences and are left out (lines 3, 5)", id="two"
        ),
    ],
)
def test_gold_links_outside_their_sentences_are_noted_with_their_lines(words, monkeypatch, outside, note):
    monkeypatch.setattr("attnlib.alignment.gold.MOST_OUTSIDE", 1)
    gold = ["0-0"] * len(SOURCE)
    for number in outside:
        gold[number] = "0-0 99-0"
    assert note in align(words, SOURCE, TARGET, gold=gold).notes


# Whether the model has learned the text.


def test_that_a_model_has_not_learned_the_text_is_said_with_the_numbers_of_analyse(words):
    stream = words.stream(Sentences(SOURCE, TARGET))
    learned = Learned()
    for _, batch in stream.numbered():
        trace = stream.trace(batch)
        learned.add(trace, stream.logits(trace), stream.never_written)
    expected = not_learned(learned.result())
    assert expected.startswith("The model has not learned this text: it predicts ")
    for gold in (None, ["0-0"] * len(SOURCE)):
        assert expected in align(words, SOURCE, TARGET, gold=gold).notes
    assert expected in align(words, SOURCE, TARGET, layer=0, head=0).notes


def test_only_the_first_batches_are_judged(words, monkeypatch):
    asked = []
    logits = type(words.adapter()).logits
    monkeypatch.setattr(
        type(words.adapter()), "logits", lambda self, trace: asked.append(1) or logits(self, trace)
    )
    align(words, SOURCE, TARGET, layer=0, head=0, batch_size=2)
    assert len(asked) == SCORED < len(SOURCE) / 2


def test_of_what_a_model_writes_it_is_not_said(words):
    assert "not learned" not in " ".join(align(words, SOURCES, layer=0, head=0, longest=7).notes)


def test_a_network_that_has_learned_its_text_is_not_warned_about():
    trained = zoo.load("one_to_one_AO")
    assert "not learned" not in " ".join(align(trained.stream(), name=trained.word, special=[2]).notes)


def test_a_stream_whose_predictions_are_wrong_is_warned_about():
    trained = zoo.load("one_to_one_AO")
    stream = trained.stream()
    wrong = replace(stream, logits=lambda trace: -stream.logits(trace))
    assert "not learned" in " ".join(align(wrong, name=trained.word, special=[2]).notes)


# Networks of the library.


def test_a_network_that_copies_word_for_word_aligns_them_in_order():
    trained = zoo.load("one_to_one_AO")
    batch = next(iter(trained.stream().batches()))
    lengths = (batch.target_mask.sum(1) - 1).tolist()  # without end marks
    stream = Stream(trained.stream().trace, [batch])
    gold = [Gold(frozenset((place, place) for place in range(length))) for length in lengths]
    alignment = align(stream, name=trained.word, special=[2], gold=gold)
    assert alignment.scores[0]["error_rate"] < 0.02
    assert alignment.target[0][0] == trained.word("target", int(batch.target_output[0, 0]))


def test_special_ids_may_differ_by_side():
    trained = zoo.load("one_to_one_AO")
    alignment = align(trained.stream(), special={"source": [2]})
    assert {line[-1] for line in alignment.target} == {"2"}
    assert "2" not in {word for line in alignment.source for word in line}


# What is refused.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"shift": "before"}, "write", id="a shift"),
        pytest.param({"method": "grow"}, "grow-diag", id="a method"),
        pytest.param({"layer": 7}, "layer is 7", id="a layer"),
        pytest.param({"target": None, "gold": ["0-0"]}, "writes its own", id="gold of what is written"),
        pytest.param({"batch": 3}, "no option batch", id="an option"),
        pytest.param({"source": ["", "", ""]}, "no sentence pair", id="nothing to align"),
        pytest.param({"source": None}, "source is missing", id="no source"),
        pytest.param({"batch_size": 0}, "at least 1", id="a size"),
    ],
)
def test_what_cannot_be_aligned_is_refused(words, given, message):
    arguments = {"source": SOURCES, "target": TARGETS} | given
    with pytest.raises(BadInput, match=message):
        align(words, **arguments)


def test_a_stream_has_its_text_already():
    with pytest.raises(BadInput, match="corpus"):
        align(zoo.load("one_to_one_AO").stream(), SOURCES)


def test_a_stream_has_no_reverse_model(words):
    with pytest.raises(BadInput, match="symmetrised"):
        align(zoo.load("one_to_one_AO").stream(), reverse=words)


def test_a_decoder_alone_has_no_cross_attention():
    model = single_stacks.model_of("GPT2")
    with pytest.raises(BadInput, match="no cross-attention"):
        align(model, SOURCES, TARGETS, tokenizer=toys.tokenizer_of(LINES))


def test_two_directions_of_other_texts_are_refused(words):
    forward = align(words, SOURCES, TARGETS, layer=0, head=0)
    with pytest.raises(BadInput, match="pair 0"):
        forward.symmetrised(forward)


# The command.


@pytest.fixture
def folder(tmp_path):
    toys.save_checkpoint(tmp_path / "tiny")
    toys.text_of(tmp_path)
    (tmp_path / "gold.talp").write_text("0-0 1-2 2-1\n" * len(SOURCE), encoding="utf-8")
    return tmp_path


def command(folder, *options):
    given = ("--model", folder / "tiny", "--source", folder / "a.txt", "--out", folder / "pairs.talp")
    return toys.attnlib("align", *given, *options)


def test_the_command_uses_the_number_of_threads_that_is_given(folder):
    before = torch.get_num_threads()
    try:
        done = command(folder, "--target", folder / "b.txt", "--threads", before + 1)
        assert done.exit_code == 0, done.output
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_the_command_writes_what_the_function_returns(folder):
    done = command(folder, "--target", folder / "b.txt", "--layer", "1", "--head", "mean")
    assert done.exit_code == 0, done.output
    assert "The model has not learned this text" in done.output
    text = ParallelText(folder / "a.txt", folder / "b.txt")
    alignment = align(folder / "tiny", text.source, text.target, layer=1, head="mean")
    assert (folder / "pairs.talp").read_text("utf-8") == alignment.to_pharaoh()


def test_the_command_writes_the_scores_of_all_heads(folder):
    done = command(folder, "--target", folder / "b.txt", "--gold", folder / "gold.talp")
    assert "IBM Model 1" in done.output
    rows = toys.table_of(folder / "pairs.scores.csv")
    assert sum(row["method"] == "head" for row in rows) == 4


def test_the_command_writes_what_the_model_wrote(folder):
    command(folder, "--generate", "--longest", "5", "--layer", "0", "--head", "0")
    written = (folder / "pairs.target.txt").read_text("utf-8").splitlines()
    links = (folder / "pairs.talp").read_text("utf-8").splitlines()
    assert len(written) == len(links) == len(SOURCE)
    for line, row in zip(written, links, strict=True):
        assert {int(link.split("-")[1]) for link in row.split()} <= set(range(len(split_words(line))))


SAMPLED = {"do_sample": True, "top_k": 20, "seed": 3}


def test_what_the_model_writes_by_its_options_is_aligned(words):
    written = align(words, SOURCES, layer=0, head=0, longest=6, generation=SAMPLED)
    for source, target in zip(SOURCES, written.target, strict=True):
        row = words.tokenizer(source, truncation=True, max_length=6)["input_ids"]
        batch = words.tokenizer(SOURCES, truncation=True, max_length=6)["input_ids"]
        tokens = words.write(TokenBatch.of_rows(batch, batch), 6, SAMPLED)
        ids = tokens.target[batch.index(row)][tokens.target_mask[batch.index(row)]].tolist()
        assert target == words.join("target", ids).words


def test_the_command_writes_by_options_of_generate(folder):
    chosen = ("--generate", "--longest", "5", "--layer", "0", "--head", "0")
    command(folder, *chosen, "--generation", "do_sample=true,top_k=20,seed=3")
    written = (folder / "pairs.target.txt").read_text("utf-8").splitlines()
    expected = align(folder / "tiny", folder / "a.txt", layer=0, head=0, longest=5, generation=SAMPLED)
    assert written == [" ".join(words) for words in expected.target]


def test_generation_is_of_what_the_model_writes(words):
    with pytest.raises(BadInput, match="leave it or the target out"):
        align(words, SOURCES, TARGETS, generation=SAMPLED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param((), "--target, or --generate", id="no target"),
        pytest.param(("--target", "b", "--generate"), "--target, or --generate", id="both"),
        pytest.param(("--generate", "--head", "one"), "expected a number from 0, or mean", id="a head"),
        pytest.param(("--target", "b", "--generation", "config"), "--generate as well", id="writes nothing"),
        pytest.param(("--generate", "--reverse-prefix", "x"), "--reverse", id="a prefix of nothing"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(tmp_path, options, message):
    done = command(tmp_path, *options)
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert message in done.output
