"""Networks built differently: what each variant changes and what it leaves, and lists of SCAN by hand."""

from dataclasses import replace

import pytest
import torch

from attnlib.decomposition.terms import alignment_terms, map_parts
from attnlib.errors import BadInput
from attnlib.models.config import ModelConfig
from attnlib.models.corpus import Corpus, collate
from attnlib.models.encoder_decoder import EncoderDecoder, sinusoidal_positions
from companion.data import registry
from companion.results.measurements import specs_of
from companion.runs import encoder_decoder
from companion.runs.evaluate import traces
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from notebooks.attend.variants import experiment
from notebooks.attend.variants.names import KINDS, LONGER, PLAIN, VARIANT_MEANINGS
from notebooks.attend.variants.tasks.scan_lists import REPEATED, TURNED, list_of_commands, places_of_actions
from notebooks.attend.variants.trainings import varied_encoder_decoder
from notebooks.shared.measure import fit_components
from notebooks.shared.tasks.synthetic import interpret
from notebooks.shared.translations import translations
from tests.notebooks.figure_builders import tiny

WIDTH = 6
BATCH = collate(Corpus.from_ids([[4, 5, 6], [6, 4]], [[4, 5], [5, 6]]), [0, 1])


def network(variant, architecture="AO", seed=0):
    config = ModelConfig(architecture, source_size=8, target_size=8, width=WIDTH)
    return varied_encoder_decoder.VARIANTS[variant](config, torch.Generator().manual_seed(seed))


# -- training --


def settings_of(spec, variant="plain"):
    return varied_encoder_decoder.Settings(
        spec.task, spec.architecture, variant, width=spec.width, steps=spec.steps, seed=spec.seed,
        batch_size=spec.batch_size, learning_rate=spec.learning_rate, options=spec.task_options,
    )  # fmt: skip


@pytest.mark.parametrize("architecture", ["AED", "AO"])
def test_a_plain_variant_is_the_suites_network_bit_for_bit(architecture, tmp_path):
    options = (("max_length", 8), ("min_length", 8), ("n_held_out", 20), ("n_train", 80))
    spec = ModelSpec("one_to_one", architecture, 4, width=8, batch_size=16, seed=3, task_options=options)
    task = registry.load("one_to_one", **dict(options))
    model, _ = encoder_decoder.train(spec, task, tmp_path / "plain")
    (tmp_path / "varied").mkdir()
    tensors = varied_encoder_decoder.record(settings_of(spec), tmp_path / "varied")
    assert {f"network.{name}" for name in model.state_dict()} == set(tensors)
    for name, value in model.state_dict().items():
        assert torch.equal(value, tensors[f"network.{name}"]), name


@pytest.mark.parametrize("variant", ["context_readout", "learned_maps"])
def test_parameters_that_a_variant_shares_start_as_those_of_the_plain_network(variant):
    plain, varied = network("plain").state_dict(), network(variant).state_dict()
    for name, value in plain.items():
        assert torch.equal(value, varied[name]), name


@pytest.mark.parametrize(
    ("variant", "architecture"), [("context_readout", "AED"), ("gated", "AED"), ("authors_defaults", "AO")]
)
def test_a_variant_of_another_architecture_is_refused(variant, architecture):
    with pytest.raises(BadInput, match=variant):
        varied_encoder_decoder.Settings("one_to_one", architecture, variant)


def test_every_variant_has_a_network():
    assert set(varied_encoder_decoder.VARIANTS) == set(varied_encoder_decoder.ARCHITECTURES_OF)


def test_names_are_those_of_the_training():
    trained = {name.removesuffix(LONGER) for name in VARIANT_MEANINGS}
    assert trained == set(varied_encoder_decoder.VARIANTS)
    assert varied_encoder_decoder.ARCHITECTURES_OF[PLAIN] == KINDS


# -- the output layer sees the context alone --


def test_without_attention_to_choose_the_context_readout_is_the_same_for_every_decoder_state():
    model = network("context_readout")
    same_everywhere = torch.ones(2, BATCH.source.shape[1], WIDTH)  # so is the context, whatever the query
    draw = torch.Generator().manual_seed(1)
    shape = (2, BATCH.target_input.shape[1], WIDTH)
    first, second = (
        model.attend(BATCH, same_everywhere, torch.randn(shape, generator=draw)).logits for _ in range(2)
    )
    assert torch.allclose(first, second)


def test_a_context_readout_is_that_of_the_plain_network_at_decoder_states_of_zero():
    model = network("context_readout")
    trace = model(BATCH)
    with_zeros = torch.cat([torch.zeros_like(trace.decoder_states), trace.context], dim=-1)
    assert torch.allclose(trace.logits, model.readout(with_zeros), atol=1e-6)


# -- gated feed-forward states --


def test_gated_states_have_no_memory():
    model = network("gated")
    others = replace(BATCH, source=BATCH.source.roll(1, dims=0), target_input=BATCH.target_input.clone())
    others.source[:, 1] = BATCH.source[:, 1]
    others.target_input[:, 0] = 7
    for name, place in (("encoder_states", 1), ("decoder_states", 1)):
        before, after = (getattr(model(batch), name)[:, place] for batch in (BATCH, others))
        assert torch.equal(before, after), name


def test_gated_states_by_the_equations():
    model = network("gated")
    inputs = torch.randn(1, 3, WIDTH, generator=torch.Generator().manual_seed(2))
    states, start = model.encode_inputs(inputs, first_position=5)
    layer = model.encoder
    summed = sinusoidal_positions(3, WIDTH, 5) + inputs[0]
    reset, update, new = (summed @ layer.weight_ih_l0.T + layer.bias_ih_l0).chunk(3, dim=-1)
    reset_bias, update_bias, new_bias = layer.bias_hh_l0.chunk(3)
    candidate = torch.tanh(new + torch.sigmoid(reset + reset_bias) * new_bias)
    expected = (1 - torch.sigmoid(update + update_bias)) * candidate
    assert start is None
    assert torch.allclose(states[0], expected, atol=1e-6)


# -- learned maps --


@pytest.mark.parametrize("architecture", ["AED", "AO"])
def test_terms_are_those_of_mapped_parts(architecture):
    model = network("learned_maps", architecture)
    trained = trained_of(model)
    compared = experiment.SeenThrough(model, experiment.as_compared)
    of_states = fit_components(trained, 80)
    of_maps = fit_components(replace(trained, model=compared), 80)
    trace = next(traces(model, trained.task.held_out))
    decoder, encoder = of_states.split(trace)
    mapped = map_parts(decoder, model.query_map.weight), map_parts(encoder, model.key_map.weight)
    terms = alignment_terms(*of_maps.split(experiment.as_compared(trace)))
    assert torch.allclose(terms, alignment_terms(*mapped), atol=1e-5)
    valid = trace.target_mask[:, :, None] & trace.source_mask[:, None, :]
    assert torch.allclose(terms.sum((0, 1)), trace.scores * valid, atol=1e-5)


def test_the_context_sums_mapped_states():
    model = network("learned_maps")
    trace = model(BATCH)
    expected = trace.attention @ (trace.encoder_states @ model.value_map.weight.T)
    assert torch.allclose(trace.context, expected, atol=1e-6)


def test_networks_without_maps_compare_their_states():
    trace = network("plain")(BATCH)
    assert torch.equal(experiment.as_compared(trace).encoder_states, trace.encoder_states)
    assert torch.equal(experiment.as_compared(trace).decoder_states, trace.decoder_states)
    assert torch.equal(experiment.as_summed(trace).encoder_states, trace.encoder_states)


def trained_of(model):
    """A network, whose vocabularies have eight words, with a task."""
    options = (("max_length", 8), ("min_length", 8), ("n_held_out", 20), ("n_train", 80))
    task = registry.load("one_to_one", **dict(options))
    return experiment.TrainedModel(None, task, model, {"held_out": {}})


def recording_of_tiny(store, variant, architecture):
    options = (("max_length", 8), ("min_length", 8), ("n_held_out", 40), ("n_train", 80))
    settings = {"options": options, "width": 8, "steps": 3, "batch_size": 16}
    spec = RunSpec.of(experiment.PROCEDURE, architecture=architecture, variant=variant, **settings)
    return store.recording(spec)


@pytest.mark.parametrize("architecture", ["AED", "AO"])
def test_values_that_are_read_are_those_of_a_plain_loop(store, architecture):
    recording = recording_of_tiny(store, "learned_maps", architecture)
    model = varied_encoder_decoder.recorded_network(recording)
    task = varied_encoder_decoder.load_task(recording.spec.resolved)
    sums, counts = torch.zeros(9, 8), torch.zeros(9)
    for trace in traces(model, task.train):
        values = trace.encoder_states @ model.value_map.weight.T
        for sample, place in trace.source_mask.nonzero().tolist():
            sums[place] += values[sample, place].detach()
            counts[place] += 1
    outputs = [2, *sorted({int(word) for word in task.train.target_ids})]
    expected, _ = translations(task)
    hits = []
    for trace in traces(model, task.held_out):
        for sample, place in trace.source_mask.nonzero().tolist():
            word = int(trace.source_tokens[sample, place])
            if word in expected:
                value = model.value_map.weight @ trace.encoder_states[sample, place]
                logits = model.readout.weight[outputs, 8:] @ (value - sums[place] / counts[place])
                hits.append(outputs[int(logits.argmax())] == expected[word])
    measured = experiment.measure_values_read(recording, 80)
    assert measured["values_read"] == pytest.approx(sum(hits) / len(hits), abs=1e-6)
    assert measured["chance"] == pytest.approx(1 / len(outputs), abs=1e-6)


def test_the_terms_of_a_plain_recording_are_those_of_the_suites_network(store):
    recording = recording_of_tiny(store, "plain", "AED")
    trained = store.model(recording.spec.resolved.spec)
    expected = experiment.measure_alignment_terms(trained, 80)
    assert experiment.measure_compared_terms(recording, 80) == expected


# -- the start and the GRU of the authors' library --


def test_embeddings_start_orthogonal():
    config = ModelConfig("AED", source_size=4, target_size=6, width=8)
    model = varied_encoder_decoder.AuthorsDefaults(config, torch.Generator().manual_seed(0))
    for embedding in (model.source_embedding, model.target_embedding):
        rows = embedding.weight.detach()
        assert torch.allclose(rows @ rows.T, torch.eye(len(rows)), atol=1e-5)


def test_biases_start_at_zero():
    model = network("authors_defaults", "AED")
    biases = [value for name, value in model.named_parameters() if "bias" in name]
    assert len(biases) == 3
    assert all(bool((bias == 0).all()) for bias in biases)


def test_the_first_state_is_trained():
    model = network("authors_defaults", "AED")
    model(BATCH).logits.sum().backward()
    assert bool((model.first_state.grad != 0).any())


def test_the_reset_gate_acts_before_the_product():
    layer = varied_encoder_decoder.ResetFirstGRU(1)
    with torch.no_grad():
        # Reset gate sigmoid(0) = 0.5, update gate sigmoid(−100) = 0, so that h' = tanh(x + 3 · 0.5 h).
        layer.weight_ih_l0.copy_(torch.tensor([[0.0], [0.0], [1.0]]))
        layer.weight_hh_l0.copy_(torch.tensor([[0.0], [0.0], [3.0]]))
        layer.bias_l0.copy_(torch.tensor([0.0, -100.0, 0.0]))
    states = layer(torch.tensor([[[0.25], [0.5]]]), torch.tensor([[0.2]]))
    first = torch.tanh(torch.tensor(0.25 + 1.5 * 0.2))
    second = torch.tanh(0.5 + 1.5 * first)
    assert states.flatten().tolist() == pytest.approx([float(first), float(second)])


def test_a_shorter_sample_hands_on_its_own_last_state():
    model = network("authors_defaults", "AED")
    states, last = model.encode(BATCH.source, BATCH.source_mask)
    lengths = BATCH.source_mask.sum(1).tolist()
    for sample, length in enumerate(lengths):
        assert torch.equal(last[sample], states[sample, length - 1])
        assert not bool(states[sample, length:].any())


# -- lists of SCAN --


@pytest.mark.parametrize(
    ("commands", "join", "words", "actions"),
    [
        pytest.param(
            [("walk", "left"), ("jump", "twice"), ("run", "right")],
            "and",
            "walk left jump twice and run right",
            "I_TURN_LEFT I_WALK I_JUMP I_JUMP I_TURN_RIGHT I_RUN",
            id="in_the_order_of_the_list",
        ),
        pytest.param(
            [("walk", "left"), ("jump", "twice"), ("run", "right")],
            "after",
            "walk left jump twice after run right",
            "I_TURN_RIGHT I_RUN I_TURN_LEFT I_WALK I_JUMP I_JUMP",
            id="the_last_command_first",
        ),
    ],
)
def test_a_list_by_hand(commands, join, words, actions):
    source = list_of_commands(commands, join)
    assert " ".join(source) == words
    of_command = {"I_" + verb.upper(): verb for verb in ("walk", "look", "run", "jump")}
    of_command |= {"I_TURN_LEFT": "left", "I_TURN_RIGHT": "right"}
    linked = [source[place] for place in places_of_actions(commands, join)]
    assert linked == [of_command[action] for action in actions.split()]


@pytest.mark.parametrize("after", [0.0, 0.5, 1.0])
def test_targets_are_what_scan_makes_of_the_commands(after):
    task = registry.load("scan_lists", after=after, n_train=50, n_held_out=50)
    for corpus in (task.train, task.held_out):
        for sample in range(len(corpus)):
            words = task.source_vocabulary.decode(corpus.source(sample).tolist())
            join = len(words) - 3
            listed = [words[place : place + 2] for place in range(0, join, 2)]
            as_scan = [word for command in listed for word in ("and", *command)][1:]
            last = words[join + 1 :]
            whole = [*as_scan, "and", *last] if words[join] == "and" else [*last, "and", *as_scan]
            assert tuple(task.target_vocabulary.decode(corpus.target(sample).tolist())) == interpret(whole)


@pytest.mark.parametrize(("after", "joins"), [(0.0, {"and"}), (1.0, {"after"}), (0.5, {"and", "after"})])
def test_the_dial_says_how_many_lists_have_after(after, joins):
    task = registry.load("scan_lists", after=after, n_train=50, n_held_out=50)
    words = [task.source_vocabulary.decode(task.train.source(sample).tolist()) for sample in range(50)]
    assert {sentence[-3] for sentence in words} == joins


def test_lists_have_about_as_many_actions_as_words():
    task = registry.load("scan_lists", n_train=50, n_held_out=50)
    assert set(task.train.source_lengths - task.train.target_lengths) == {1}


def test_every_command_has_as_many_actions_as_words():
    for command in (*TURNED, *REPEATED):
        assert (len(command), len(interpret(command))) == (2, 2)


# -- what is asked --


def test_each_variant_is_trained_as_the_plain_network_of_its_task():
    config = tiny("variants", longer=())
    plain = {spec for spec in specs_of(experiment.measurements(config)) if isinstance(spec, ModelSpec)}
    varied = [spec for spec in specs_of(experiment.measurements(config)) if isinstance(spec, RunSpec)]
    assert len(varied) == 5
    for spec in varied:
        assert spec.resolved.spec in plain


def test_a_mark_of_the_dial_is_part_of_the_name():
    config = tiny("variants", after=(25,))
    tasks = {experiment.names_of(spec)["task"] for spec in specs_of(experiment.measurements(config))}
    assert tasks == {"one_to_one", "scan_lists", "scan_lists_25"}


def test_a_variant_trained_longer_has_twice_the_updates_of_its_own_name():
    config = tiny("variants", variant=("authors_defaults",), longer=("authors_defaults",))
    short, longer = experiment.varied_specs(config)
    assert longer.resolved.steps == 2 * short.resolved.steps
    named = [
        experiment.names_of(spec, experiment.longer_specs(config))["variant"] for spec in (short, longer)
    ]
    assert named == ["authors_defaults", "authors_defaults_longer"]


def test_a_plain_network_is_an_encoder_decoder_of_the_library():
    assert varied_encoder_decoder.VARIANTS["plain"] is EncoderDecoder
