"""The instruments of the book in a browser, on committed results: by pointer and by keyboard.

Pages are opened from the disk, as by a reader without a server. What they say is compared with what Python
makes of the same data.
"""

import base64
import json
import re
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from attnlib.decomposition.components import Parts
from attnlib.decomposition.terms import alignment_terms
from attnlib.training.corpus import collate
from companion.book.instrument import instrument
from companion.results.result import Result
from companion.runs.loop import new_model
from companion.runs.store import load_task
from companion.runs.suite import spec_of
from notebooks.attend.alignment_breakdown.networks import NETWORKS, UPDATES, nine_switches
from notebooks.attend.order_words.instrument import pairs
from notebooks.attend.temporal_share.drawing import dial
from notebooks.beyond.along_training.instrument import networks as tasks
from notebooks.learn.agreement.instrument import board
from notebooks.learn.multi_head.instrument import networks as heads
from notebooks.learn.permutation_copying.instrument import networks
from notebooks.primer.one_step.instrument import sentences

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "book" / "_files" / "instruments"
SWAPS = dict.fromkeys(("opening", "modifier", "join", "times", "manner"), "one word for another")
OF = {  # by the name of the script; what follows a space tells its uses apart
    "drawn-or-driven-away": ("permutation_copying", networks),
    "drawn-or-driven-away heads": (
        "multi_head",
        lambda result: heads(result, {"single": "one head", "copied": "copies"}),
    ),
    "drawn-or-driven-away tasks": (
        "along_training",
        lambda result: tasks(result, {"copying_permutation": "permutations"}),
    ),
    "dial": ("temporal_share", dial),
    "agreement-board": ("agreement", board),
    "one-step": ("one_step", sentences),
    "nine-switches": ("alignment_breakdown", lambda _: nine_switches()),
    "swap-one-word": ("order_words", lambda result: pairs(result, SWAPS)),
}
NAMELESS = """[...document.querySelectorAll('button, svg[tabindex], select, input')]
    .filter(own => !(own.innerText || own.ariaLabel || own.labels?.length)).length"""
RUN = """([name, asked]) => Instruments.load("networks", name).then(held => {
    const network = new Instruments.Network(held);
    return asked.map(([source, read], n) => {
        const {terms, attention, probabilities} = network.run(source, {read});
        return {attention, probabilities, terms: n < 20 ? terms : null};
    });
})"""
NONSENSE = (
    "task=%<b>&table=x&kind=x&swap=x&set=x&column=-9&choice=x&look=1e9&network=x&architecture=x&colour=x&up=x"
    "&on=x"
)
STICKING_OUT = "document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Name of an instrument → its data, and the page that has it and nothing else."""
    folder, pages = tmp_path_factory.mktemp("site"), {}
    (folder / "_static").mkdir()
    (folder / "_static" / "instruments").symlink_to(SCRIPTS)
    for name, (experiment, data_of) in OF.items():
        data, table = data_of(Result.load(ROOT / "results" / "paper" / f"{experiment}.json"))
        script = name.partition(" ")[0]
        path = folder / "part" / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        head = '<!doctype html><meta name="viewport" content="width=device-width">'
        path.write_text(head + instrument(script, data, table, label=name), encoding="utf-8")
        pages[name] = SimpleNamespace(data=data, table=table, path=path)
    front = re.search(r"\{raw\} html\n(.*?)```", (ROOT / "book" / "index.md").read_text("utf-8"), re.DOTALL)
    (folder / "index.html").write_text(head + front[1], encoding="utf-8")
    pages["front"] = SimpleNamespace(data=None, path=folder / "index.html")
    return pages


@pytest.fixture
def shown(chromium, made):
    """``with shown(name, address="") as (page, data):``; scripts must not complain."""

    @contextmanager
    def opened(name, address="", width=800, scripts=True):
        size = {"width": width, "height": 900}
        context = chromium.new_context(viewport=size, reduced_motion="reduce", java_script_enabled=scripts)
        page, complaints = context.new_page(), []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda asked: complaints.append(asked.url))
        page.goto(made[name].path.as_uri() + address)
        yield page, made[name].data
        assert complaints == []
        context.close()

    return opened


def said(page):
    return page.locator(".said").last.inner_text()


def numbers(text):
    return [float(found.replace("−", "-")) for found in re.findall(r"[−-]?\d+(?:\.\d+)?", text)]


def rounded(values, step=0.01):
    """What equals these values as a page shows them; halves go either way."""
    return pytest.approx(values, abs=0.51 * step)


def only(rows, **fields):
    """The one that has these."""
    (found,) = (row for row in rows if fields.items() <= row.items())
    return found


def opacity(matrix, cell):
    """The number that a cell of a heat map shows."""
    return numbers(matrix.locator(f"[data-cell='{cell}']").get_attribute("style"))[-1]


@pytest.mark.parametrize("name", OF)
def test_every_instrument_fits_a_telephone_has_names_and_a_table_without_scripts(shown, made, name):
    with shown(name, f"#{name.partition(' ')[0]}?{NONSENSE}", width=390) as (page, _):
        assert page.evaluate(STICKING_OUT) <= 0
        assert not page.locator(".static").is_visible()
        assert page.evaluate(NAMELESS) == 0
        assert page.locator("button.play").count() == 0  # less motion was asked for
    with shown(name, scripts=False) as (page, _):
        assert page.locator(".static").is_visible()
        page.locator("summary").click()
        assert page.locator("tbody tr").count() == len(made[name].table)


def test_a_network_is_followed_through_training(shown):
    with shown("drawn-or-driven-away") as (page, data):
        away = [one for one in data["networks"] if (one["kind"], one["way"]) == ("permutation", "away")]
        steps = data["steps"]["permutation"]
        slider, key = page.locator("input[type=range]"), page.locator(".key [data-way=away]")
        slider.focus()
        page.keyboard.press("Home")
        for _ in range(20):
            page.keyboard.press("ArrowRight")
        mean = sum(one["accuracy"][20] for one in away) / len(away)
        assert numbers(key.inner_text()) == rounded([len(away), 100 * mean], step=1)
        assert slider.get_attribute("aria-valuetext") == f"{steps[20]} updates"
        place = [one for one in data["networks"] if one["kind"] == "permutation"].index(away[0])
        page.locator("select").select_option(str(place))
        seed, update, accuracy, right, *_ = numbers(said(page))
        assert (seed, update, accuracy) == (away[0]["name"], steps[20], round(100 * away[0]["accuracy"][20]))
        assert right == pytest.approx(away[0]["right"][20], rel=0.5)
        assert right < 1
        page.wait_for_function(f"location.hash.includes('network={place}')")
        address = page.evaluate("location.hash")
    with shown("drawn-or-driven-away", address) as (page, _):  # the view is in the address
        assert numbers(said(page))[:2] == [seed, update]
        page.get_by_role("button", name="samples").click()
        assert page.locator(".key [data-way=away]").inner_text().strip().startswith("0 networks")


def test_heads_and_tasks_are_followed_too(shown):
    with shown("drawn-or-driven-away heads") as (page, data):
        drawn = [one for one in data["networks"] if (one["kind"], one["way"]) == ("single", "drawn")]
        assert numbers(page.locator(".key [data-way=drawn]").inner_text())[0] == len(drawn) > 0
        page.get_by_role("button", name="copies").click()
        copies = [one for one in data["networks"] if one["kind"] == "copied"]
        assert {one["way"] for one in copies} == {"away"}
        mean = sum(one["accuracy"][-1] for one in copies) / len(copies)
        counted = numbers(page.locator(".key [data-way=away]").inner_text())
        assert counted == rounded([len(copies), 100 * mean], step=1)
    with shown("drawn-or-driven-away tasks") as (page, data):
        networks = data["networks"]
        assert [one["way"] for one in networks] == ["away"] * 5 + [None] * 5
        assert "held uniform" in page.locator(".key [data-way=none]").inner_text()
        page.locator("select").select_option("6")
        accuracy, known = (100 * networks[6][curve][-1] for curve in ("accuracy", "known"))
        expected = [1, data["steps"]["copying_permutation"][-1], accuracy, 1, known]
        assert numbers(said(page)) == rounded(expected, step=1)


def test_the_dial_moves_matrices_shares_and_points_together(shown):
    with shown("dial") as (page, data):
        slider, points = page.locator("input[type=range]"), data["points"]
        for _ in range(4):
            slider.press("ArrowRight")
        kinds = list(zip(points["task"], points["cell"], strict=True))
        mine = [n for n, own in enumerate(kinds) if own == ("reordering_100", "gru")]
        kind = only(data["kinds"], task="reordering_100", architecture="AED")
        assert page.locator(".point.chosen:not(.six)").count() == len(mine)
        share = sum(points["temporal_share"][n] for n in mine) / len(mine)
        assert numbers(said(page))[3] == rounded(share)
        assert opacity(page.locator(".panel").nth(2), "2,2") == rounded(kind["shares"][2][2], step=0.001)
        sample = page.locator(".panel").nth(1)
        sample.locator("[data-cell='3,4']").hover()
        assert numbers(said(page)) == [4, 5, kind["sample"][3][4]]
        sample.locator("svg").press("ArrowDown")  # from the cell that was pointed at
        assert numbers(said(page)) == [5, 5, kind["sample"][4][4]]
        page.get_by_role("button", name="attention only").click()
        assert "attention only" in said(page)
        page.wait_for_function("location.hash.includes('architecture=AO')")


def test_a_point_of_the_dial_is_marked_and_told_whose_matrices_are_shown(shown):
    with shown("dial", "#dial?task=reversal&architecture=AO") as (page, data):
        kinds = list(zip(data["points"]["task"], data["points"]["cell"], strict=True))
        scatter, matrix = (page.locator(".panel svg").nth(n) for n in (3, 0))
        places, before, halo = scatter.locator(".point"), matrix.inner_html(), page.locator(".halo")
        assert said(page).endswith("The matrices are theirs.")
        assert halo.count() == 0

        def marked(n):
            place = numbers(places.nth(n).get_attribute("transform"))
            return [float(halo.get_attribute(name)) for name in ("cx", "cy")] == pytest.approx(place, abs=0.1)

        n = kinds.index(("scan", "lstm"))
        scatter.press("ArrowRight")  # the first of all, then back over the last to the one that is meant
        for _ in range(len(kinds) - n):
            scatter.press("ArrowLeft")
        assert said(page).startswith("SCAN, LSTM with attention")
        assert said(page).endswith("those of attention only on reversal, not of this network.")
        assert matrix.inner_html() == before
        assert marked(n)
        scatter.press("Enter")
        assert said(page).startswith("SCAN, LSTM with attention")
        assert said(page).endswith("those of GRUs with attention on SCAN, not of this network.")
        assert matrix.inner_html() != before
        assert marked(n)
        scatter.press("ArrowRight")
        assert halo.count() == 1
        page.locator(".panel").nth(1).locator("[data-cell='0,0']").hover()
        assert halo.count() == 0  # a cell of a matrix is told of now
    with shown("dial", "#dial?task=scan&architecture=AED") as (page, data):
        at = page.locator(".panel svg").nth(3).locator(".point").nth(kinds.index(("scan", "gru")))
        box = at.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert said(page).endswith("The matrices are those of its kind, GRUs with attention on SCAN.")
        assert page.locator(".halo").count() == 1


def test_a_word_is_swapped_and_the_difference_is_what_the_weights_say(shown):
    with shown("swap-one-word", "#swap-one-word?task=scan&kind=AED&swap=join") as (page, data):
        pair = only(data["pairs"], task="scan", kind="AED", swap="join")
        before, after = (run["matrix"] for run in pair["runs"])
        change = after[0][1] - before[0][1]
        assert opacity(page.locator(".panel").nth(2), "0,1") == rounded(abs(change), step=0.001)
        page.locator(".panel").nth(2).locator("[data-cell='0,1']").hover()
        assert numbers(said(page))[1:] == rounded([before[0][1], after[0][1], change])
        page.locator("select").nth(1).select_option("AO")
        pair = only(data["pairs"], task="scan", kind="AO", swap="join")
        before, after = (run["matrix"] for run in pair["runs"])
        rows = zip(before, after, strict=False)
        moved = [sum(abs(a - b) for a, b in zip(*both, strict=True)) / 2 for both in rows]
        assert numbers(said(page))[0] == rounded(max(moved))


def test_a_cell_of_the_board_says_its_numbers_and_shows_its_course(shown):
    with shown("agreement-board") as (page, data):
        heads = page.locator(".cells thead th").all_inner_texts()[1:]
        assert [head.split("\n") for head in heads] == [list(column) for column in data["columns"]]
        assert "<" not in "".join(heads)
        own = only(data["sets"], name="AG News (part)")
        place = data["sets"].index(own)
        cell = page.locator(".cells tbody tr").nth(place).locator("button").nth(1)
        cell.focus()
        assert said(page) == cell.get_attribute("aria-label")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        table_5, table_3, _ = own["cells"][0]["of"]
        expected = [*table_5["own"]["as in the paper"], table_5["printed"], own["chance"][0]]
        expected += [table_5["xi"]["as in the paper"][0], table_5["printedXi"]]
        assert numbers(said(page))[:7] == rounded(expected, step=1)
        best = max(own["cells"][0]["course"])
        first = next(n for n, value in enumerate(own["between"]) if value > best)
        right = own["accuracy"][first]
        expected = [right, best, own["steps"][first], right, table_5["xi"]["as in the paper"][0]]
        assert numbers(said(page))[7:] == rounded(expected, step=1)  # ξ of the mean course, and the mean of ξ
        page.get_by_role("button", name="apart", exact=True).click()
        assert numbers(said(page))[0] == rounded(table_5["own"]["apart"][0], step=1)
        assert numbers(said(page))[-1] == rounded(table_5["xi"]["apart"][0], step=1)
        page.get_by_role("button", name="Kendall's τ (Table 3)", exact=True).click()
        assert numbers(said(page))[0] == rounded(table_3["own"]["apart"][0], step=1)


def test_another_table_of_the_board_has_its_own_letter_and_scale_and_no_course(shown):
    with shown("agreement-board") as (page, data):
        assert page.locator(".cells thead th").first.inner_text() == "0 to 100 %"
        assert page.locator("text.note").is_visible()
        page.get_by_role("button", name="Kendall's τ (Table 3)", exact=True).click()
        corner, *heads = page.locator(".cells thead th span, .cells thead th:first-child").all_inner_texts()
        assert corner == "−100 to 100 %"
        assert heads == [head.replace("𝒜", "τ") for head, _ in data["columns"]]
        place = data["sets"].index(only(data["sets"], name="Multi30k En–De"))
        low = data["sets"][place]["cells"][2]["of"][1]["own"]["as in the paper"][1]
        assert low < 0
        cell = page.locator(".cells tbody tr").nth(place).locator("button").nth(2)
        line, bar = (cell.locator(kind) for kind in (".grid", ".bar"))
        x1, x2 = (float(line.get_attribute(end)) for end in ("x1", "x2"))
        assert float(bar.get_attribute("x1")) == pytest.approx(x1 + (x2 - x1) * (low + 100) / 200)
        for table in ("Kendall's τ (Table 3)", "agreement on training samples (Table 7)"):
            page.get_by_role("button", name=table, exact=True).click()
            cell.click()
            assert not page.locator("text.note").is_visible()
            assert f"that of {data['tables'][0]}, on held-out samples" in said(page)
            assert "right" not in said(page)
            assert table.partition(" (")[0] in said(page)


def test_xi_on_the_board_stands_beside_its_line(shown):
    with shown("agreement-board") as (page, data):
        for place in range(len(data["sets"])):
            for column in range(len(data["columns"])):
                page.locator(".cells tbody tr").nth(place).locator("button").nth(column).click()
                if page.locator("text.note").count():
                    line = page.locator("line.at[y2='212']").bounding_box()["x"]
                    note, panel = (page.locator(of).last.bounding_box() for of in ("text.note", ".panel svg"))
                    assert note["x"] > line
                    assert note["x"] + note["width"] <= panel["x"] + panel["width"]
        assert page.locator("text.note").count()


def written(file: Path) -> dict[str, torch.Tensor]:
    """Parameters and components that a network's script holds, in single precision."""
    held = json.loads(re.search(r"\{.*\}", file.read_text(encoding="utf-8"))[0])
    numbers = torch.frombuffer(bytearray(base64.b64decode(held["half"])), dtype=torch.float16).float()
    parts = numbers.split([torch.Size(shape).numel() for shape in held["shapes"].values()])
    return {name: part.view(shape) for (name, shape), part in zip(held["shapes"].items(), parts, strict=True)}


@torch.no_grad()
def pass_of(task, architecture, samples=200):
    """A network of the page in torch: its samples, the pass, and the nine terms."""
    spec = spec_of(task, architecture, scale="quick", steps=UPDATES[task])
    loaded = load_task(spec.task, spec.task_options)
    tensors = written(SCRIPTS / "networks" / f"{task}-{architecture}.js")
    tables = {name: tensors.pop(name) for name in [*tensors] if name.endswith((".temporal", ".chi"))}
    network = new_model(spec, loaded)
    network.load_state_dict(tensors)
    batch = collate(loaded.held_out, range(samples))
    trace = network.eval()(batch)
    parts = {}
    for side, tokens, mask in (
        ("decoder", batch.target_input, batch.target_mask),
        ("encoder", batch.source, batch.source_mask),
    ):
        states, chi = getattr(trace, f"{side}_states"), tables[f"{side}.chi"][tokens]
        temporal = tables[f"{side}.temporal"][: states.shape[1]].expand(states.shape)
        parts[side] = Parts(temporal, chi, states - temporal - chi, mask)
    return batch, trace, alignment_terms(parts["decoder"], parts["encoder"])


@pytest.mark.parametrize("architecture", NETWORKS)
@pytest.mark.parametrize("task", UPDATES)
def test_the_network_in_the_page_is_torchs(shown, task, architecture):
    """With its own words read: attention and probabilities to 1e-5, of 1,200 sentences in all."""
    batch, trace, terms = pass_of(task, architecture)
    sizes = list(zip(batch.source_mask.sum(1).tolist(), batch.target_mask.sum(1).tolist(), strict=True))
    words = zip(batch.source.tolist(), batch.target_input.tolist(), sizes, strict=True)
    asked = [[source[:across], read[:down]] for source, read, (across, down) in words]
    with shown("nine-switches") as (page, _):
        given = page.evaluate(RUN, [f"{task}-{architecture}", asked])
    for i, (across, down) in enumerate(sizes):
        attention, probabilities = (torch.tensor(given[i][name]) for name in ("attention", "probabilities"))
        assert (attention - trace.attention[i, :down, :across]).abs().max() < 1e-5
        assert (probabilities - trace.logits[i, :down].softmax(-1)).abs().max() < 1e-5
        if given[i]["terms"]:
            expected = terms[:, :, i, :down, :across]
            torch.testing.assert_close(torch.tensor(given[i]["terms"]), expected, atol=2e-4, rtol=1e-5)


def test_a_switch_changes_attention_and_output(shown):
    batch, trace, terms = pass_of("scan", "AED", samples=64)
    right = (trace.logits.argmax(-1) == trace.target_outputs) | ~batch.target_mask
    # It writes the target.
    i = next(i for i in range(64) if right[i].all() and batch.target_mask[i].sum() > 6)
    down, across = int(batch.target_mask[i].sum()), int(batch.source_mask[i].sum())
    left = terms[1, 1, i, :down, :across].softmax(-1)
    alike = 1 - (left - trace.attention[i, :down, :across]).abs().sum(-1).mean() / 2
    task = load_task("scan", ())
    text = "+".join(task.source_vocabulary.decode(batch.source[i, : across - 1].tolist()))
    with shown("nine-switches", f"#nine-switches?task=scan&network=AED&text={text}") as (page, _):
        output = page.locator("output.alike")
        page.wait_for_function("document.querySelector('output.alike').textContent === '1.00'")
        page.get_by_role("button", name="only χχ").click()
        assert float(output.inner_text()) == rounded(float(alike))
        assert page.locator(".writes mark").count() > 0
        board = page.locator(".board button[aria-pressed=true]")
        assert board.all_inner_texts()[0].startswith("χ·χ")
        board.first.press("Enter")  # the last one off: attention is uniform
        assert opacity(page.locator(".panel").nth(1), "0,0") == rounded(1 / across, step=0.001)
        page.get_by_label("Type a sentence").fill("jump sideways")
        page.keyboard.press("Enter")
        assert "does not know “sideways”" in page.locator(".complaint").inner_text()
        page.get_by_label("Type a sentence").fill("jump twice")
        page.keyboard.press("Enter")
        assert page.locator(".writes .full").inner_text() == "jump jump end"


def test_results_of_another_sentence_are_dim_and_the_reason_stands_under_the_box(shown):
    with shown("nine-switches", "#nine-switches?task=scan&network=AED&text=jump+twice") as (page, _):
        box, reason = page.get_by_label("Type a sentence"), page.locator(".complaint")
        writes = ".writes .full"
        page.wait_for_selector(writes)
        panels = page.locator(".stage > .panels")

        def dim():
            looks = panels.evaluate_all(
                "all => all.map(own => [+getComputedStyle(own).opacity, own.ariaBusy])"
            )
            assert len(looks) == 2
            return {(shown < 0.5, busy) for shown, busy in looks}

        assert dim() == {(False, "false")}
        assert not reason.is_visible()
        box.fill("walk left and flurb")
        assert dim() == {(True, "true")}  # before it is run
        assert "Enter" in reason.inner_text()
        box.press("Enter")
        assert dim() == {(True, "true")}
        assert page.locator(writes).inner_text() == "jump jump end"
        assert "does not know “flurb”. What is shown below is still of “jump twice”." in reason.inner_text()
        assert "jump" not in said(page)
        assert box.get_attribute("aria-invalid") == "true"
        under, over = (one.bounding_box() for one in (reason, box))
        assert 0 <= under["y"] - over["y"] - over["height"] < 20
        page.locator(".panel svg").first.locator("[data-cell='0,0']").hover()
        assert said(page) == ""  # nothing is told of the sentence before
        box.fill("walk left and jump")
        box.press("Enter")
        assert dim() == {(False, "false")}
        assert not reason.is_visible()
        assert page.locator(writes).inner_text().endswith("walk jump end")
        page.evaluate("() => { Instruments.load = () => new Promise(() => {}); }")
        page.get_by_role("button", name="attention only").click()
        assert dim() == {(True, "true")}  # until the other network is there


def test_the_front_page_has_a_small_one(shown):
    with shown("front", width=390) as (page, _):
        page.wait_for_selector(".writes mark")  # without residuals it writes something else
        page.get_by_role("button", name="all nine").click()
        assert page.locator(".writes mark").count() == 0
        assert page.evaluate(STICKING_OUT) <= 0


def test_attention_gathers_on_the_word_that_is_worked(shown):
    with shown("one-step") as (page, data):
        own, word = data["sentences"][data["sentence"]], data["word"]

        def weights():
            return [float(text) for text in page.locator(".sources small").all_inner_texts()]

        assert weights() == rounded(own["attention"][0][word])
        page.locator("input[type=range]").press("End")
        assert weights() == rounded(own["attention"][-1][word])
        best = max(range(len(own["source"])), key=own["attention"][-1][word].__getitem__)
        assert f"on “{own['source'][best]}”" in said(page)
        page.locator("[aria-label=Translation] button").nth(word).press("ArrowLeft")
        assert weights() == rounded(own["attention"][-1][word - 1])
        page.locator("[aria-label=Translation] button").nth(word + 1).hover()
        assert f"predicting “{own['target'][word + 1]}”" in said(page)
        page.locator("[aria-label=Sentence] button").first.click()
        assert page.locator(".sources li").count() == len(data["sentences"][0]["source"])


def test_no_script_makes_markup_of_words():
    for script in SCRIPTS.glob("*.js"):
        text = script.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text)
