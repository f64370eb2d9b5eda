"""The instruments of the book in a browser, on committed results: by pointer and by keyboard.

Pages are opened from the disk, as by a reader without a server. What they say is compared with what Python
makes of the same data.
"""

import gzip
import json
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from docutils.core import publish_string
from myst_parser.parsers.docutils_ import Parser

from attnlib.models.corpus import Corpus, collate
from attnlib.models.vocabulary import UNK
from companion.book.drawings import decomposition
from companion.book.notebook import instrument
from companion.book.scorecard import SIGNS, scorecard_markdown
from companion.book.site import fill_markers
from companion.claims.estimates import look_up
from companion.claims.verdicts import Verdict
from companion.claims.verify import verify
from companion.results.result import Result
from companion.runs.store import load_task
from notebooks.attend.alignment_breakdown import networks, switches
from notebooks.attend.order_words.instrument import pairs
from notebooks.attend.temporal_share.drawing import dial
from notebooks.learn.agreement.instrument import board, paper, place_of, published_numbers
from notebooks.learn.early_dynamics.instrument import CORPORA, expectation_maximisation, rounds_of_counting
from notebooks.learn.early_dynamics.trainings.word_counts import CountTables, alignment, translation
from notebooks.learn.optimal_attention.instrument import EXAMPLES, probabilities, triangle
from notebooks.primer.one_step.instrument import sentences
from notebooks.shared.invented_language import TRANSLATIONS
from notebooks.shared.style import data_name, of_heads, of_sentences, of_tasks

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "book" / "_files" / "instruments"
SWAPS = dict.fromkeys(("opening", "modifier", "join", "times", "manner"), "one word for another")
HEADS, TASKS = {"single": "one head", "copied": "copies"}, {"copying_permutation": "permutations"}
OF = {  # by the name of the script; what follows a space tells its uses apart
    "toward-or-away": ("permutation_copying", of_sentences),
    "toward-or-away heads": ("multi_head", partial(of_heads, kinds=HEADS)),
    "toward-or-away tasks": ("along_training", partial(of_tasks, kinds=TASKS)),
    "dial": ("temporal_share", dial),
    "agreement-board": ("agreement", board),
    "one-step": ("one_step", sentences),
    "nine-switches": ("alignment_breakdown", lambda _: switches.nine_switches()),
    "break-without-residual": ("alignment_breakdown", lambda _: switches.challenge()),
    "attention-triangle": ("optimal_attention", lambda _: triangle()),
    "count-and-divide": ("early_dynamics", lambda _: rounds_of_counting()),
    "swap-one-word": ("order_words", lambda result: pairs(result, SWAPS)),
}
NAMELESS = """[...document.querySelectorAll('button, svg[tabindex], select, input')]
    .filter(own => !(own.textContent || own.ariaLabel || own.labels?.length)).length"""
RUN = Path(__file__).with_name("run_network.js").read_text(encoding="utf-8")
NONSENSE = (
    "task=%<b>&table=x&kind=x&swap=x&set=x&column=-9&choice=x&look=1e9&network=x&architecture=x&colour=x&up=x"
    "&on=x"
)
LARGEST = 25_000  # bytes of an instrument's data, packed
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
        head = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        path.write_text(head + instrument(script, data, table, label=name), encoding="utf-8")
        pages[name] = SimpleNamespace(data=data, table=table, path=path)
    front = re.search(
        r"\{raw\} html\n(<div.*?)```", (ROOT / "book" / "index.md").read_text("utf-8"), re.DOTALL
    )
    filled = fill_markers(front[1], folder)
    (folder / "index.html").write_text(head + filled, encoding="utf-8")
    pages["front"] = SimpleNamespace(data=None, path=folder / "index.html")
    return pages


@pytest.fixture
def shown(opened, made):
    """``page, data = shown(name, address="")``."""

    def shown(name, address="", **options):
        return opened(made[name].path, address, reduced_motion="reduce", **options), made[name].data

    return shown


def status(page):
    return page.locator(".said").last.inner_text()


def numbers(text):
    return [float(number.replace("−", "-")) for number in re.findall(r"[−-]?\d+(?:\.\d+)?", text)]


def rounded(values, step=0.01):
    """What equals these values as a page shows them; halves go either way."""
    return pytest.approx(values, abs=0.51 * step)


def only(rows, **fields):
    (match,) = (row for row in rows if fields.items() <= row.items())
    return match


def opacity(matrix, cell):
    return numbers(matrix.locator(f"[data-cell='{cell}']").get_attribute("style"))[-1]


@pytest.fixture(params=OF)
def on_a_telephone(request, shown):
    name = request.param
    page, _ = shown(name, f"#{name.partition(' ')[0]}?{NONSENSE}", width=390)
    return page


def test_every_instrument_fits_a_telephone(on_a_telephone):
    assert on_a_telephone.evaluate(STICKING_OUT) <= 0


def test_every_instrument_hides_its_table_where_scripts_run(on_a_telephone):
    assert not on_a_telephone.locator(".static").is_visible()


def test_everything_in_an_instrument_has_a_name(on_a_telephone):
    assert on_a_telephone.evaluate(NAMELESS) == 0


def test_no_instrument_plays_where_less_motion_is_wanted(on_a_telephone):
    assert on_a_telephone.locator("button.play").count() == 0


@pytest.mark.parametrize("name", OF)
def test_every_instrument_has_a_table_without_scripts(shown, made, name):
    page, _ = shown(name, java_script_enabled=False)
    assert page.locator(".static").is_visible()
    page.locator("summary").click()
    assert page.locator("tbody tr").count() == len(made[name].table)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF)
def test_the_data_of_every_instrument_are_small(made, name):
    assert len(gzip.compress(json.dumps(made[name].data, ensure_ascii=False).encode())) <= LARGEST


def test_a_network_is_followed_through_training(shown):
    page, data = shown("toward-or-away")
    away = [
        network
        for network in data["networks"]
        if (network["kind"], network["way"]) == ("permutation", "away")
    ]
    steps = data["steps"]["permutation"]
    slider, key = page.locator("input[type=range]"), page.locator(".key [data-way=away]")
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    mean = sum(network["accuracy"][20] for network in away) / len(away)
    assert numbers(key.inner_text()) == rounded([len(away), 100 * mean], step=1)
    assert slider.get_attribute("aria-valuetext") == f"{steps[20]} updates"
    place = [network for network in data["networks"] if network["kind"] == "permutation"].index(away[0])
    page.locator("select").select_option(str(place))
    seed, update, accuracy, right, *_ = numbers(status(page))
    assert (seed, update, accuracy) == (away[0]["name"], steps[20], round(100 * away[0]["accuracy"][20]))
    assert right == pytest.approx(away[0]["right"][20], rel=0.5)
    assert right < 1
    page.wait_for_function(f"location.hash.includes('network={place}')")
    address = page.evaluate("location.hash")
    page, _ = shown("toward-or-away", address)  # the view is in the address
    assert numbers(status(page))[:2] == [seed, update]
    page.get_by_role("button", name="samples").click()
    assert not page.locator(".key [data-way=away]").count()  # no network of samples looks away


def test_heads_are_followed(shown):
    page, data = shown("toward-or-away heads")
    drawn = [
        network for network in data["networks"] if (network["kind"], network["way"]) == ("single", "drawn")
    ]
    assert numbers(page.locator(".key [data-way=drawn]").inner_text())[0] == len(drawn) > 0
    page.get_by_role("button", name="copies").click()
    page.locator("input[type=range]").press("End")
    copies = [network for network in data["networks"] if network["kind"] == "copied"]
    assert {network["way"] for network in copies} == {"away"}
    mean = sum(network["accuracy"][-1] for network in copies) / len(copies)
    counted = numbers(page.locator(".key [data-way=away]").inner_text())
    assert counted == rounded([len(copies), 100 * mean], step=1)


def test_tasks_are_followed(shown):
    page, data = shown("toward-or-away tasks")
    networks = data["networks"]
    assert [network["way"] for network in networks] == ["away"] * 5 + [None] * 5
    assert "held uniform" in page.locator(".key [data-way=none]").inner_text()
    page.locator("input[type=range]").press("End")
    page.locator("select").select_option("6")
    accuracy, known = (100 * networks[6][curve][-1] for curve in ("accuracy", "known"))
    expected = [1, data["steps"]["copying_permutation"][-1], accuracy, 1, known]
    assert numbers(status(page)) == rounded(expected, step=1)


def test_the_courses_start_before_training(shown):
    page, data = shown("toward-or-away")
    assert page.locator("output").first.inner_text() == f"{data['steps']['permutation'][0]} updates"
    assert data["steps"]["permutation"][0] == 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # on paper they end where training ends
    assert page.locator("output").first.inner_text() == f"{data['steps']['permutation'][-1]} updates"


def test_the_courses_play_once_by_themselves(opened, made):
    page = opened(made["toward-or-away"].path)  # of a reader who did not ask for less motion
    end = made["toward-or-away"].data["steps"]["permutation"][-1]
    page.wait_for_function(f"document.querySelector('output').textContent === '{end} updates'")
    page.wait_for_function("document.querySelector('button.play').innerText === 'Play'")
    assert page.evaluate("location.hash") == ""


def weights(data, letters, across):
    """What the letters of a matrix say, a list a row."""
    steps = len(data["letters"]) - 1
    values = [data["letters"].index(letter) / steps for letter in letters]
    return [values[first : first + across] for first in range(0, len(values), across)]


def average_of(data, n):
    return weights(data, data["points"]["average"][n], data["points"]["across"][n])


def test_the_dial_moves_all_its_panels_together(shown):
    page, data = shown("dial")
    for _ in range(4):
        page.locator("input[type=range]").press("ArrowRight")
    mine = pd.DataFrame(data["points"]).query("task == 'reordering_100' and kind == 'AED' and decay == 0")
    kind = only(data["kinds"], task="reordering_100", kind="AED")
    assert page.locator(".point.chosen:not(.six)").count() == len(mine)
    assert numbers(status(page))[3] == rounded(mine["temporal_share"].mean())
    assert opacity(page.locator(".panel").nth(2), "2,2") == rounded(kind["shares"][2][2], step=0.001)
    sample = page.locator(".panel").nth(1)
    sample.locator("[data-cell='3,4']").hover()
    matrix = weights(data, kind["sample"], len(kind["columns"]))
    assert numbers(status(page)) == rounded([4, 5, matrix[3][4]])
    sample.locator("svg").press("ArrowDown")  # from the cell that was pointed at
    assert numbers(status(page)) == rounded([5, 5, matrix[4][4]])
    page.locator("select").first.select_option("AO")
    assert "attention only" in status(page)
    page.wait_for_function("location.hash.includes('architecture=AO')")


def test_the_dial_says_what_to_notice(shown):
    page, data = shown("dial")
    assert page.locator(".panel svg").nth(3).is_visible() is False  # points are folded away

    def ends(architecture):
        shares = [
            only(data["kinds"], task=f"reordering_{end}", kind=architecture)["shares"] for end in (0, 100)
        ]
        with_residual = [sum(share[2]) + share[0][2] + share[1][2] for share in shares]
        return [100 * value for value in (shares[0][0][0], shares[1][0][0], *with_residual)]

    for architecture in ("AED", "AO"):
        page.locator("select").first.select_option(architecture)
        told_of = numbers(page.locator(".notice").inner_text())
        assert told_of == [0, 100, *(rounded(value, step=1) for value in ends(architecture))]


def test_a_marked_point_of_the_dial_has_its_matrix_beside_it(shown):
    page, data = shown("dial", "#dial?task=reversal&architecture=AO")
    page.locator(".stage summary").click()
    names = list(zip(data["points"]["task"], data["points"]["kind"], strict=True))
    average, scatter, beside = (page.locator(".panel svg").nth(n) for n in (0, 3, 4))
    places, before, halo = scatter.locator(".point"), average.inner_html(), page.locator(".halo")
    assert status(page).endswith("The matrices are from these networks.")
    assert halo.count() == 0

    def assert_marked_and_beside(n):
        place = numbers(places.nth(n).get_attribute("transform"))
        assert [float(halo.get_attribute(name)) for name in ("cx", "cy")] == pytest.approx(place, abs=0.1)
        for s, row in enumerate(average_of(data, n)):
            for t in (0, s % len(row), len(row) - 1):
                assert opacity(beside, f"{s},{t}") == rounded(row[t], step=0.002)

    n = names.index(("scan", "AED-lstm")) + 1
    scatter.press("ArrowRight")  # the first of all, then back over the last to the one that is meant
    for _ in range(places.count() - n):
        scatter.press("ArrowLeft")
    assert status(page).startswith("SCAN, LSTM with attention, seed 1:")
    assert status(page).endswith("The matrices above are of another kind, reversal, attention only.")
    assert average.inner_html() == before
    assert_marked_and_beside(n)
    scatter.press("Enter")
    assert status(page).endswith("The matrices above are of its kind, SCAN, LSTM with attention.")
    assert opacity(average, "2,3") == rounded(average_of(data, n - 1)[2][3], step=0.002)
    assert_marked_and_beside(n)
    scatter.press("ArrowRight")
    assert halo.count() == 1
    page.locator(".panel").nth(1).locator("[data-cell='0,0']").hover()
    assert halo.count() == 0  # a cell of a matrix is told of now
    page, data = shown("dial", "#dial?task=scan&architecture=AED")
    page.locator(".stage summary").click()
    places = pd.DataFrame(data["points"]).query("decay == 0")[["typicality", "temporal_share"]].to_numpy()
    networks_of_scan = [n for n, name in enumerate(names[: len(places)]) if name == ("scan", "AED")]
    distances = {n: sorted(abs(places - places[n]).sum(1))[1] for n in networks_of_scan}
    alone = max(distances, key=distances.get)  # no other network is near to where the reader clicks
    at = page.locator(".panel svg").nth(3).locator(".point").nth(alone)
    at.scroll_into_view_if_needed()
    box = at.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert status(page).endswith("The matrices above are of its kind, SCAN, GRU with attention.")
    assert page.locator(".halo").count() == 1


def test_the_dial_has_networks_with_weight_decay_in_their_colours(shown):
    page, data = shown("dial", "#dial?task=one_to_one&architecture=AED")
    points, scatter = pd.DataFrame(data["points"]), page.locator(".panel svg").nth(3)
    places = scatter.locator(".point")
    assert places.count() == sum(points["decay"] == 0)  # without it, unless its colours are shown
    page.locator(".stage summary").click()
    page.get_by_role("button", name="weight decay").click()
    there = points[points.groupby(["task", "kind"])["decay"].transform("max") > 0]
    assert places.count() == len(there)
    first = there.index[there["decay"] == 0.01][0]
    place = there.index.get_loc(first)
    fills = [places.nth(n).evaluate("own => getComputedStyle(own).fill") for n in (place, 0)]
    assert (there["decay"].iloc[0], len({*fills})) == (0, 2)
    scatter.press("ArrowRight")
    for _ in range(len(there) - place):
        scatter.press("ArrowLeft")
    assert status(page).startswith("one-to-one, GRU with attention, seed 0, weight decay 0.01:")
    expected = there.loc[first, ["typicality", "temporal_share", "input_share"]].tolist()
    assert numbers(status(page))[2:5] == rounded(expected)
    beside = page.locator(".panel svg").nth(4)
    assert opacity(beside, "4,4") == rounded(average_of(data, first)[4][4], step=0.002)
    page.wait_for_function("location.hash.includes('colour=decay')")


def test_the_difference_of_swapped_words_is_what_the_weights_say(shown):
    page, data = shown("swap-one-word", "#swap-one-word?task=scan&kind=AED&swap=join")
    pair = only(data["pairs"], task="scan", kind="AED", swap="join")
    before, after = (run["matrix"] for run in pair["runs"])
    change = after[0][1] - before[0][1]
    assert opacity(page.locator(".panel").nth(2), "0,1") == rounded(abs(change), step=0.001)
    page.locator(".panel").nth(2).locator("[data-cell='0,1']").hover()
    assert numbers(status(page))[1:] == rounded([before[0][1], after[0][1], change])
    page.locator("select").nth(1).select_option("AO")
    pair = only(data["pairs"], task="scan", kind="AO", swap="join")
    before, after = (run["matrix"] for run in pair["runs"])
    rows = zip(before, after, strict=False)
    moved = [sum(abs(a - b) for a, b in zip(*both, strict=True)) / 2 for both in rows]
    assert numbers(status(page))[0] == rounded(max(moved))


@torch.no_grad()
def test_the_input_component_of_a_word_is_swapped_alone(shown):
    """By a network that runs in the page, as in torch; the others say what was measured of them."""
    page, data = shown("swap-one-word", "#swap-one-word?task=reordering_50&kind=here-AED&swap=modifier")
    page.get_by_role("button", name="input component only").click()
    page.wait_for_function("document.querySelector('.panels').ariaBusy === 'false'")
    pair = only(data["pairs"], task="reordering_50", kind="AED", swap="modifier")
    network, loaded, tables = networks.in_page("reordering_50", "AED")
    source, other = (loaded.source_vocabulary.encode(run["source"][:-1]) for run in pair["runs"])
    target, there = (loaded.target_vocabulary.encode(run["predicted"][:-1]) for run in pair["runs"])
    batch, swapped = (
        collate(Corpus.from_ids(*([side] for side in sides)), [0])
        for sides in ((source, target), (other, target))
    )
    trace, place = network(batch), pair["place"]
    states, chi = trace.encoder_states.clone(), tables["encoder.chi"]
    states[0, place] += chi[other[place]] - chi[source[place]]
    before, alone = trace.attention[0], network.attend(batch, states, trace.decoder_states).attention[0]
    whole = network(swapped).attention[0]
    moved = (alone - before).abs().sum(1) / 2
    gain = 1 - float((alone - whole).abs().sum() / (before - whole).abs().sum())
    most = int(moved.argmax())
    assert numbers(status(page)) == rounded([float(moved[most]), most + 1, float(moved.mean()), gain])
    step = page.locator(".panel").nth(2)
    change = float(alone[most, place] - before[most, place])
    assert opacity(step, f"{most},{place}") == rounded(abs(change), step=0.002)
    page.wait_for_function("location.hash.includes('exchanged=input')")
    page.get_by_role("button", name="the word", exact=True).press("Enter")  # the whole of it
    swapped = collate(Corpus.from_ids([other], [there]), [0])
    steps = slice(0, min(len(target), len(there)) + 1)
    moved = (network(swapped).attention[0][steps] - before[steps]).abs().sum(1) / 2
    page.wait_for_function("document.querySelector('.panels').ariaBusy === 'false'")
    assert numbers(status(page))[2:] == rounded([float(moved.mean()), gain])


def test_the_network_is_the_readers_choice(shown):
    page, data = shown("swap-one-word", "#swap-one-word?task=reordering_100&kind=AED-lstm&swap=modifier")
    menus = page.locator("select")
    chosen = [menus.nth(n).input_value() for n in range(3)]
    gain = only(data["pairs"], task="reordering_100", kind="AED-lstm", swap="modifier")["gain"]
    assert numbers(status(page))[-1] == rounded(gain)
    page.get_by_role("button", name="input component only").click()  # of these networks it was not kept
    assert [menus.nth(n).input_value() for n in range(3)] == chosen
    assert "choose under “Network” a small one" in page.locator(".notice").inner_text()
    page.get_by_role("button", name="the word", exact=True).click()
    assert not page.locator(".notice").is_visible()
    menus.nth(0).select_option("reordering_50")
    menus.nth(1).select_option("here-AO")
    tasks = menus.nth(0).locator("option").evaluate_all("all => all.map(own => own.value)")
    assert tasks == [task for task in data["tasks"] if task in data["here"]]


def test_invented_words_are_glossed(shown):
    page, data = shown("swap-one-word", "#swap-one-word?task=reordering_50&kind=AED&swap=modifier")
    pair = only(data["pairs"], task="reordering_50", kind="AED", swap="modifier")
    english = {translation: word for word, translation in TRANSLATIONS.items()}
    written = [word for word in pair["runs"][0]["predicted"] if word != "<eos>"]
    rows = page.locator(".panel").first.locator("text[text-anchor=end]").all_text_contents()
    assert rows[: len(written)] == [f"{word} ({english[word]})" for word in written]
    assert "reverse order" in page.locator(".stage .quiet").first.inner_text()
    page.locator("select").first.select_option("scan")
    assert not page.locator(".stage .quiet").first.inner_text()


def of_board(page, data, table, data_set):
    """The place of a data set in a table of the board, its cells on the page, and its numbers."""
    rows = only(data["tables"], name=table)["rows"]
    place = rows.index(only(rows, set=data_set))
    return place, page.locator(".cells tbody tr").nth(place).locator("button"), rows[place]["numbers"]


def expected_numbers(numbers_of, choice, *names):
    """What the board says of these: ours, its interval, and what is printed."""
    values = []
    for number in map(numbers_of.get, names):
        values += number["own"][choice][:3] if number["own"] else []
        values += [float(number["printed"].strip("*"))] if number["printed"] else []
    return [value for value in values if value is not None]


def test_a_cell_of_the_board_says_its_numbers(shown):
    page, data = shown("agreement-board", "#agreement-board?table=5")
    heads = page.locator(".cells thead th").all_inner_texts()[1:5]
    words_then_symbols = [[plain, symbol] for symbol, plain in data["columns"].values()]
    assert [head.split("\n") for head in heads] == words_then_symbols[:4]
    assert "<" not in "".join(heads)
    _, cells, row = of_board(page, data, "5", "AG News (part)")
    cells.nth(1).focus()
    seen = cells.nth(1).inner_text().strip()
    # A name begins with what is seen.
    assert cells.nth(1).get_attribute("aria-label") == f"{seen}: {status(page)}"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    names = ("alpha_beta_uf", "chance", "xi alpha_beta_uf", "xi_star")
    expected = expected_numbers(row, 1, *names)
    assert numbers(status(page))[: len(expected)] == rounded(expected, step=0.01)
    assert status(page).count("not judged") == 3  # but chance
    course = data["courses"]["AG News (part)"]
    best = max(course["columns"]["alpha_beta_uf"])
    first = next(n for n, value in enumerate(course["between"]) if value > best)
    right = course["accuracy"][first]
    at_first = [right, best, course["steps"][first], right]
    assert numbers(status(page))[len(expected) :] == rounded(at_first, step=1)  # ξ of the mean course
    page.get_by_role("button", name="apart", exact=True).click()
    expected = expected_numbers(row, 0, *names)
    assert numbers(status(page))[: len(expected)] == rounded(expected, step=0.01)
    assert "judged" not in status(page)
    page.locator("select").select_option("3")
    there, _, kendall = of_board(page, data, "3", "AG News (part)")
    assert ": AG News (part), " in page.locator(".cells [aria-pressed=true]").get_attribute("aria-label")
    assert numbers(status(page))[:4] == rounded(expected_numbers(kendall, 0, "alpha_beta_uf"), step=0.01)
    page.wait_for_function(f"location.hash.includes('set={there}') && location.hash.includes('table=3')")


@pytest.mark.parametrize("table", ["2", "3", "4", "5", "6", "7", "8", "10"])
def test_every_printed_number_is_on_the_board_beside_ours(shown, table):
    """As the file of the published tables has it, with verdicts as the scorecard counts them."""
    entries = {(cell.dataset, place_of(cell)): cell for cell in paper().tables.table(table)}
    page, data = shown("agreement-board", f"#agreement-board?table={table}")
    shown_table = only(data["tables"], name=table)
    printed = [
        cell["printed"] for row in shown_table["rows"] for cell in row["numbers"].values() if cell["printed"]
    ]
    assert {cell.value for cell in entries.values()} == {text.strip("*") for text in printed}
    assert len(printed) >= len(entries)
    labels = page.locator(".cells tbody button").all()
    columns = [name for name in data["columns"] if name in shown_table["rows"][0]["numbers"]]
    assert len(labels) == len(shown_table["rows"]) * len(columns)
    for n in (0, len(labels) - 1):  # one that was run, one that was not
        row = shown_table["rows"][n // len(columns)]
        label = labels[n].get_attribute("aria-label").partition(f": {row['set']}, ")[2]
        expected = expected_numbers(row["numbers"], 1, columns[n % len(columns)])
        assert [cell for cell in numbers(label) if cell in expected] == expected
        assert row["why"] in label
    judged = [row for row in published_numbers() if row.profile == "paper" and row.verdict.judged]
    for row in judged:
        name, part, *_ = row.claim.keys[0].split(".")
        entry = row.claim.published.entries[0]
        if entry.table == table and part != "saliency" and not row.claim.reading:
            cell = only(shown_table["rows"], set=data_name(name))["numbers"][place_of(entry)]
            assert (cell["printed"].strip("*"), cell["sign"]) == (entry.value, SIGNS[row.verdict])
            values = Result.load(ROOT / "results" / "paper" / f"{row.claim.experiment}.json").values
            assert cell["own"][1][0] == rounded(look_up(values, row.claim.keys[0]).value, step=0.1)


def test_another_table_of_the_board_has_its_own_scale(shown):
    page, data = shown("agreement-board")
    assert page.locator(".cells thead th").first.inner_text() == "0 to 100 %\nours; published"
    _, cells, row = of_board(page, data, "2", "SST")
    assert numbers(cells.first.inner_text()) == [round(row["alpha_beta_uf"]["own"][1][0]), 20]
    cells.first.click()
    assert page.locator("text.note").is_visible()
    page.locator("select").select_option("3")
    corner = page.locator(".cells thead th").first.inner_text()
    heads = page.locator(".cells thead th:not(:first-child) small").all_inner_texts()[:3]
    assert corner == "−100 to 100 %\nours; published"
    assert heads == [head.replace("𝒜", "τ") for head, _ in data["columns"].values()][:3]
    _, cells, row = of_board(page, data, "3", "Multi30k En–De")
    low = row["delta_beta_uf"]["own"][1][1]
    assert low < 0
    line, bar = (cells.nth(2).locator(kind) for kind in (".grid", ".bar"))
    x1, x2 = (float(line.get_attribute(end)) for end in ("x1", "x2"))
    assert float(bar.get_attribute("x1")) == pytest.approx(x1 + (x2 - x1) * (low + 100) / 200)
    for table in ("3", "7"):
        page.locator("select").select_option(table)
        page.locator(".cells tbody button").first.click()
        assert not page.locator("text.note").is_visible()
        assert "is shown with Tables 2, 5, 10" in status(page)
        assert only(data["tables"], name=table)["title"] in status(page)
    page.locator("select").select_option("10")  # of the same measure as Table 5
    of_board(page, data, "10", "SST")[1].nth(1).click()
    assert page.locator(".panel svg").is_visible()


def test_xi_on_the_board_stands_beside_its_line(shown):
    page, data = shown("agreement-board")
    beside = 0
    for row in page.locator(".cells tbody tr").all()[: len(data["courses"])]:
        for cell in row.locator("button").all():
            cell.click()
            if page.locator("text.note").count() and page.locator("text.note").is_visible():
                line = page.locator("line.at[y2='212']").bounding_box()["x"]
                note, panel = (page.locator(of).last.bounding_box() for of in ("text.note", ".panel svg"))
                assert note["x"] > line
                assert note["x"] + note["width"] <= panel["x"] + panel["width"]
                beside += 1
    assert beside


@torch.no_grad()
def pass_of(task, architecture, samples=200):
    """Samples of a network of the page, the pass, and the nine terms."""
    network, loaded, tables = networks.in_page(task, architecture)
    batch = collate(loaded.held_out, range(samples))
    # In double precision, so that torch's own rounding, which depends on the processor, takes no part.
    trace = network.double()(batch)
    terms = networks.terms_of(trace, batch, {name: table.double() for name, table in tables.items()})
    return batch, as_single(trace), terms.float()


def as_single(trace):
    """What the page shows of a trace, in single precision."""
    return SimpleNamespace(
        attention=trace.attention.float(), logits=trace.logits.float(), target_outputs=trace.target_outputs
    )


@pytest.mark.parametrize("architecture", switches.NETWORKS)
@pytest.mark.parametrize("task", networks.UPDATES)
def test_the_network_in_the_page_is_torchs(shown, task, architecture):
    """With its own words read: attention and probabilities to 1e-5, of 1,200 sentences in all."""
    batch, trace, terms = pass_of(task, architecture)
    sizes = list(zip(batch.source_mask.sum(1).tolist(), batch.target_mask.sum(1).tolist(), strict=True))
    words = zip(batch.source.tolist(), batch.target_input.tolist(), sizes, strict=True)
    asked = [[source[:across], read[:down]] for source, read, (across, down) in words]
    page, _ = shown("nine-switches")
    given = page.evaluate(RUN, [f"{task}-{architecture}", asked])
    for i, (across, down) in enumerate(sizes):
        attention, probabilities = (torch.tensor(given[i][name]) for name in ("attention", "probabilities"))
        assert (attention - trace.attention[i, :down, :across]).abs().max() < 1e-5
        assert (probabilities - trace.logits[i, :down].softmax(-1)).abs().max() < 1e-5
        if given[i]["terms"]:
            expected = terms[:, :, i, :down, :across]
            torch.testing.assert_close(torch.tensor(given[i]["terms"]), expected, atol=2e-4, rtol=1e-5)


def test_a_switch_changes_what_the_network_writes(shown):
    batch, trace, terms = pass_of("scan", "AED", samples=64)
    right = (trace.logits.argmax(-1) == trace.target_outputs) | ~batch.target_mask
    # It writes the target.
    i = next(i for i in range(64) if right[i].all() and batch.target_mask[i].sum() > 6)
    down, across = int(batch.target_mask[i].sum()), int(batch.source_mask[i].sum())
    left = terms[1, 1, i, :down, :across].softmax(-1)
    alike = 1 - (left - trace.attention[i, :down, :across]).abs().sum(-1).mean() / 2
    text = "+".join(load_task("scan", ()).source_vocabulary.decode(batch.source[i, : across - 1].tolist()))
    page, _ = shown("nine-switches", f"#nine-switches?task=scan&network=AED&text={text}")
    page.wait_for_function("document.querySelector('output.alike').textContent === '1.00'")
    page.get_by_role("button", name="only χχ").click()
    assert float(page.locator("output.alike").inner_text()) == rounded(float(alike))
    assert page.locator(".writes mark").count() > 0
    board = page.locator(".board button[aria-pressed=true]")
    assert board.all_inner_texts()[0].startswith("χ·χ")
    board.first.press("Enter")  # the last one off: attention is uniform
    assert opacity(page.locator(".panel").nth(1), "0,0") == rounded(1 / across, step=0.001)


def test_results_of_another_sentence_are_dim_until_it_has_run(shown):
    page, _ = shown("nine-switches", "#nine-switches?task=scan&network=AED&text=jump+twice")
    box, reason = page.get_by_label("Type a sentence"), page.locator(".complaint")
    writes = ".writes .full"
    page.wait_for_selector(writes)
    panels = page.locator(".stage > .panels")

    def dim():
        looks = panels.evaluate_all("all => all.map(own => [+getComputedStyle(own).opacity, own.ariaBusy])")
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
    assert "jump" not in status(page)
    assert box.get_attribute("aria-invalid") == "true"
    under, over = (element.bounding_box() for element in (reason, box))
    assert 0 <= under["y"] - over["y"] - over["height"] < 20
    page.locator(".panel svg").first.locator("[data-cell='0,0']").hover()
    assert status(page) == ""  # nothing is told of the sentence before
    box.fill("walk left and jump")
    box.press("Enter")
    assert dim() == {(False, "false")}
    assert not reason.is_visible()
    assert page.locator(writes).inner_text().endswith("walk jump end")
    page.evaluate("() => { Instruments.network = () => new Promise(() => {}); }")
    page.get_by_role("button", name="attention only").click()
    assert dim() == {(True, "true")}  # until the other network is there


def test_the_front_page_has_a_small_one(shown):
    page, _ = shown("front", width=390)
    page.wait_for_selector(".writes mark")  # without residuals it writes something else
    assert not page.locator(".static").is_visible()
    page.emulate_media(media="print")
    assert not page.locator(".static").is_visible()  # the matrices are printed as they are
    page.emulate_media(media="screen")
    page.get_by_role("button", name="all nine").click()
    assert page.locator(".writes mark").count() == 0
    assert page.evaluate(STICKING_OUT) <= 0


def test_the_small_one_has_a_picture_without_scripts(shown):
    page, _ = shown("front", java_script_enabled=False)
    image = page.locator(".static svg.drawing")
    assert image.is_visible()
    assert image.bounding_box()["width"] > 100


def test_the_small_one_has_a_table_without_scripts(shown):
    page, _ = shown("front", java_script_enabled=False)
    page.locator("summary").click()
    rows = [row.locator("td").all_inner_texts() for row in page.locator("tbody tr").all()]
    table = switches.nine_switches()[1].loc["SCAN"].T.map("{:.2f}".format)
    assert [row[1:] for row in rows] == table.to_numpy().tolist()
    labels = [name.removeprefix("similarity, ") for name in table.index]
    assert [row[0].removeprefix("all: ") for row in rows] == labels


def test_the_small_one_has_a_picture_in_print(shown):
    page, _ = shown("front")  # a network that is not there yet leaves its place to the picture, on paper
    page.wait_for_selector(".stage[data-network]")
    page.evaluate("document.querySelector('.stage').removeAttribute('data-network')")
    page.emulate_media(media="print")
    assert page.locator(".static svg.drawing").is_visible()


def test_the_drawing_of_the_small_one_is_what_the_network_does():
    words, actions, attention, without_residual = networks.switched_attention()
    assert tuple(words) == decomposition.SWITCHED_COMMAND
    assert tuple(actions) == decomposition.SWITCHED_ACTIONS
    for drawn, computed in (
        (decomposition.ALL_TERMS, attention),
        (decomposition.WITHOUT_RESIDUAL, without_residual),
    ):
        torch.testing.assert_close(torch.tensor(drawn), computed, atol=0.0051, rtol=0)


@pytest.mark.parametrize("width", [1280, 390])
def test_both_matrices_are_side_by_side_where_there_is_room(shown, width):
    page, _ = shown("nine-switches", "#nine-switches?task=reordering_50&network=AED", width=width)
    page.wait_for_selector(".writes .full")
    page.add_style_tag(content="body { max-width: 44rem; }")  # as wide as a page's text
    first, other = (page.locator(".panel svg").nth(n).bounding_box() for n in (0, 1))
    assert (first["y"] == other["y"]) == (width == 1280)
    assert other["x"] + other["width"] <= width
    assert first["width"] == pytest.approx(other["width"], abs=1)


@pytest.fixture(scope="module")
def scorecard(tmp_path_factory):
    """The scorecard as it is today, without the theme: its path, and the verdicts on what it lists."""
    folder = tmp_path_factory.mktemp("scorecard")
    (folder / "_static").mkdir()
    (folder / "_static" / "instruments").symlink_to(SCRIPTS)
    rows = verify(ROOT)
    settings = {"report_level": 5, "stylesheet_path": ""}
    markdown = scorecard_markdown(ROOT, rows).partition("---\n\n")[2]  # without what is for the theme
    text = publish_string(markdown, parser=Parser(), writer_name="html5", settings_overrides=settings)
    style = (ROOT / "book" / "_static" / "attnlib.css").read_bytes()
    text = text.replace(b"<table>", b'<table class="table">').replace(b"<body", b'<body class="bd-article"')
    path = folder / "scorecard.html"
    path.write_bytes(text.replace(b"</head>", b"<style>" + style + b"</style></head>"))
    return path, [row for row in rows if row.profile == "paper" and not row.claim.number]


def claims_shown(page):
    """Ids of the claims that are not filtered out."""
    rows = page.locator("details.claim-row:not([hidden]) > dl")
    return sorted(rows.evaluate_all("all => all.map(own => own.id)"))


def ids_of(rows):
    return sorted(f"claim-{row.claim.id}" for row in rows)


def test_every_claim_is_on_the_scorecard_folded(opened, scorecard):
    path, rows = scorecard
    page = opened(path)
    assert claims_shown(page) == ids_of(rows)
    assert page.locator("details.claim-row:visible").count() == 0


def test_claims_are_filtered_by_what_came_out(opened, scorecard):
    path, rows = scorecard
    page = opened(path)
    page.get_by_label("What came out").select_option("too few runs to tell")
    undecided = [row for row in rows if row.verdict is Verdict.UNDECIDED]
    assert claims_shown(page) == ids_of(undecided)
    page.get_by_label("Kind").select_option("falsifier")
    falsifiers = [row for row in undecided if row.claim.kind == "falsifier"]
    assert claims_shown(page) == ids_of(falsifiers)
    assert numbers(page.locator("#scorecard-filter .said").inner_text()) == [len(falsifiers), len(rows)]


def test_claims_are_filtered_by_chapter(opened, scorecard):
    path, rows = scorecard
    page = opened(path)
    page.get_by_label("Chapter").select_option("Copying permutations")
    assert claims_shown(page) == ids_of(row for row in rows if row.claim.experiment == "permutation_copying")


def test_a_search_finds_the_words_of_a_claim(opened, scorecard):
    path, _ = scorecard
    page = opened(path)
    page.get_by_label("Search").fill("self-attention symmetric")
    claims = claims_shown(page)
    assert "claim-self-attention-is-symmetric" in claims
    assert len(claims) < 30
    page.wait_for_function("location.hash.includes('search=self-attention')")


def test_one_claim_is_open_at_a_time(opened, scorecard):
    path, _ = scorecard
    page = opened(path)
    page.locator("details.all-claims > summary").click()
    rows = page.locator("details.claim-row > summary")
    rows.nth(0).click()
    rows.nth(1).click()
    assert page.locator("details.claim-row[open]").count() == 1


def test_a_link_opens_the_claim_that_it_leads_to_though_it_is_filtered_out(opened, scorecard):
    path, _ = scorecard
    page = opened(path)
    page.get_by_label("What came out").select_option("too few runs to tell")
    page.evaluate("location.hash = 'claim-self-attention-is-symmetric'")
    page.wait_for_function(
        "document.getElementById('claim-self-attention-is-symmetric').closest('details').open"
    )
    assert page.locator("#claim-self-attention-is-symmetric").is_visible()


def test_a_shared_address_filters(opened, scorecard):
    path, rows = scorecard
    page = opened(path)
    page.goto(f"{path.as_uri()}#scorecard-filter?outcome=does+not+hold+here")
    page.reload()
    statements = [row for row in rows if row.claim.kind == "statement"]
    not_said = [row for row in statements if row.claim.origin in ("inferred", "reported")]
    assert claims_shown(page) == ids_of(row for row in not_said if row.verdict is Verdict.NOT_REPRODUCED)


def test_the_scorecard_fits_a_telephone(opened, scorecard):
    path, _ = scorecard
    page = opened(path)
    page.set_viewport_size({"width": 390, "height": 900})
    page.locator("details.all-claims > summary").click()
    page.locator("details.claim-row > summary").first.click()
    badge = page.locator("details.claim-row .source-badge").first.bounding_box()
    assert badge["x"] + badge["width"] < 390


def test_scores_become_weights_of_a_context(shown):
    page, data = shown("one-step")
    sentence, word = data["sentences"][data["sentence"]], data["word"]

    def column(name):
        return [numbers(text)[0] for text in page.locator(f".steps tbody {name}").all_inner_texts()]

    def weights_of(step, word):
        return torch.tensor(sentence["scores"][step][word]).softmax(-1).tolist()

    assert column("td:nth-of-type(1)") == rounded(sentence["scores"][-1][word])  # it opens after training
    assert column("td.weight") == rounded(weights_of(-1, word))
    worked = data["worked"]
    context = sum(map(float.__mul__, weights_of(-1, word), worked["states"]))
    assert context == pytest.approx(worked["context"], abs=0.003)
    assert numbers(page.locator(".sum").inner_text())[-1] == rounded(worked["context"])
    page.locator("input[type=range]").press("Home")
    assert column("td.weight") == rounded(weights_of(0, word))
    assert f"{worked['coordinate']}:" not in page.locator(".sum").inner_text()  # the states were others then
    page.locator("input[type=range]").press("End")
    best = max(range(len(sentence["source"])), key=sentence["scores"][-1][word].__getitem__)
    assert f"on “{sentence['source'][best]}”" in status(page)
    words = page.locator("[aria-label='Word to predict'] button")
    words.nth(word).press("ArrowLeft")
    assert column("td.weight") == rounded(weights_of(-1, word - 1))
    words.nth(word + 1).hover()
    assert f"predicting “{sentence['target'][word + 1]}”" in status(page)
    page.locator("[aria-label=Sentence] button").first.click()
    assert page.locator(".steps tbody tr").count() == len(data["sentences"][0]["source"])


def test_scores_of_the_instrument_give_the_committed_weights():
    result = Result.load(ROOT / "results" / "paper" / "one_step.json")
    data, _ = sentences(result)
    committed = pd.DataFrame(result.tables["map"]).sort_values(
        ["pair", "step", "target_place", "source_place"]
    )
    weights = torch.cat(
        [torch.tensor(sentence["scores"]).softmax(-1).flatten() for sentence in data["sentences"]]
    )
    expected = torch.tensor(committed["attention"].to_numpy(float), dtype=torch.float32)
    torch.testing.assert_close(weights, expected, atol=0.003, rtol=0)


def test_a_point_of_the_triangle_is_dragged(shown):
    page, _ = shown("attention-triangle")
    box = page.locator("svg.drag").bounding_box()

    def at(x, y):
        return box["x"] + x * box["width"] / 340, box["y"] + y * box["width"] / 340

    def assert_is(example, shares):
        chances = probabilities(EXAMPLES[example][1], torch.tensor(shares).div(100).numpy())
        shown_chances = [float(text) for text in page.locator(".output b").all_inner_texts()]
        assert shown_chances == rounded(chances.tolist(), step=0.001)
        assert numbers(status(page))[:3] == rounded([share / 100 for share in shares])

    page.mouse.move(*at(170, 34))
    page.mouse.down()
    assert_is("three", [100.0, 0.0, 0.0])
    page.mouse.move(*at(170, 34 + 130 * 3**0.5))
    assert_is("three", [0.0, 50.0, 50.0])
    assert "No attention does better" in status(page)
    page.mouse.move(*at(10, 34 + 130 * 3**0.5 + 20))  # outside of the triangle, beyond its second corner
    page.mouse.up()
    assert_is("three", [0.0, 100.0, 0.0])
    page.mouse.move(*at(170, 100))
    assert_is("three", [0.0, 100.0, 0.0])  # it was let go
    page.wait_for_function("location.hash.includes('second=100')")
    page.get_by_role("button", name="two labels").click()
    assert_is("two", [0.0, 100.0, 0.0])


def test_a_point_of_the_triangle_moves_by_arrow_keys(shown):
    page, _ = shown("attention-triangle", "#attention-triangle?example=three&first=0&second=50")
    triangle_ = page.locator("svg.drag")
    for key, expected in (
        ("ArrowUp", [0.05, 0.48, 0.47]),
        ("ArrowDown", [0, 0.5, 0.5]),
        ("ArrowRight", [0, 0.45, 0.55]),
        ("ArrowLeft", [0, 0.5, 0.5]),
    ):
        triangle_.press(key)
        assert numbers(status(page))[:3] == pytest.approx(expected, abs=0.011)


def count_tables(counted, rounds):
    """Counts and translation tables of the sentence pairs of the page, round by round, without marks."""
    pairs = Corpus.from_ids(
        *([[UNK + word for word in pair[side]] for pair in counted["pairs"]] for side in (0, 1))
    )
    tables = CountTables.of(pairs, UNK + len(counted["source"]), UNK + len(counted["target"]), rounds)
    counts = [table[UNK:, UNK:] for table in tables.counts]
    return counts, [translation(table) for table in counts], tables.log_likelihood


@pytest.mark.parametrize("corpus", CORPORA)
def test_rounds_of_counting_are_expectation_maximisation(shown, corpus):
    page, data = shown("count-and-divide", f"#count-and-divide?corpus={corpus}&round=0")
    counted = only(data["corpora"], name=corpus)
    counts, translations, log_likelihood = count_tables(counted, data["rounds"])
    panels = [page.locator(".panel").nth(n) for n in range(3)]

    def cells(panel):
        return [numbers(text)[0] for text in panel.locator("text.number, text.over").all_text_contents()]

    for done in (0, 1, data["rounds"]):
        page.locator("input[type=range]").press("Home")
        for _ in range(done):
            page.locator("input[type=range]").press("ArrowRight")
        aligned = alignment(translations[done], *counted["pairs"][0])
        assert cells(panels[0]) == rounded(counts[done].flatten().tolist())
        assert cells(panels[1]) == rounded(translations[done].flatten().tolist())
        assert cells(panels[2]) == rounded(aligned.flatten().tolist())
        assert numbers(status(page))[-1 - len(aligned[-1])] == rounded(log_likelihood[done])


@pytest.mark.parametrize("corpus", CORPORA)
def test_plain_loops_count_as_the_tables_do(corpus):
    counted = only(rounds_of_counting()[0]["corpora"], name=corpus)
    _, translations, _ = count_tables(counted, 3)
    for (word, written), probability in expectation_maximisation(CORPORA[corpus].pairs, 3).items():
        place = counted["source"].index(word), counted["target"].index(written)
        assert probability == pytest.approx(translations[3][place])


def test_commands_that_break_without_residuals_are_found(shown):
    page, _ = shown("break-without-residual")
    page.wait_for_selector(".writes .full")
    done = page.locator(".goals .done")
    assert done.count() == 0
    assert page.locator(".writes mark").count() == 0
    box = page.get_by_label("Type a command")
    box.fill("jump and")
    box.press("Enter")
    assert "no command yet" in status(page)
    box.fill("look")
    box.press("Enter")
    assert page.locator(".writes mark").count() > 0
    assert done.count() == 2  # it breaks, and is a single word
    box.fill("walk and")
    page.get_by_role("button", name="walk", exact=True).click()
    page.wait_for_function("location.hash.includes('joined=walk+and+walk')")
    assert done.count() == 3
    assert "All three found" in status(page)


def test_a_goal_in_the_address_is_judged_anew(shown):
    page, _ = shown("break-without-residual", "#break-without-residual?text=walk&breaks=walk&single=look")
    page.wait_for_selector(".writes .full")
    assert page.locator(".goals .done").all_inner_texts() == [
        "✓ a command of a single word that breaks: look"
    ]


def test_nine_switches_introduces_its_network(shown):
    page, data = shown(
        "nine-switches", "#nine-switches?task=scan&network=AED&text=jump+left+after+walk+twice"
    )
    page.wait_for_selector(".writes .full")
    about = page.locator(".about")
    assert "write the actions of a command" in about.inner_text()
    assert "not learned" not in about.inner_text()
    assert "“walk” is written with most of the attention on “twice”" in page.locator(".late").inner_text()
    _, _, attention, _ = networks.switched_attention()
    assert int(attention[0].argmax()) == ["jump", "left", "after", "walk", "twice"].index("twice")
    page.get_by_role("button", name="attention only").click()
    assert "It has not learned this task" in about.inner_text()
    accuracy = only(data["networks"], task="scan", architecture="AO")["accuracy"]
    assert numbers(about.inner_text()) == rounded([100 * accuracy], step=0.1)
    page.wait_for_function(
        "document.querySelector('.late').textContent === ''"
    )  # no recurrence carries a word on


def test_the_front_page_says_of_its_networks_what_the_chapter_says():
    front = (ROOT / "book" / "index.md").read_text("utf-8")
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', front, re.DOTALL)[1])
    chapter = switches.nine_switches()[0]["networks"]
    for network in data["networks"]:
        same = only(chapter, task=network["task"], architecture=network["architecture"])
        assert network | {"examples": None} == same | {"examples": None}


@pytest.mark.parametrize("allowed", [True, False])
def test_the_address_of_a_view_is_copied_or_shown(shown, allowed):
    page, _ = shown("attention-triangle", "#attention-triangle?example=three&first=20&second=30")
    page.evaluate(
        """allowed => Object.defineProperty(navigator, "clipboard", { value: { writeText: async text => {
            if (!allowed) throw new Error("forbidden");
            window.copied = text;
        } } })""",
        allowed,
    )
    page.get_by_role("button", name="Copy link to this view").click()
    page.wait_for_function("document.querySelector('.copied').textContent !== ''")
    text = page.locator(".copied").inner_text()
    address = page.evaluate("window.copied") if allowed else text
    assert address.endswith("#attention-triangle?example=three&first=20&second=30")
    assert (text == "Copied.") is allowed


def test_no_script_makes_markup_of_words():
    for script in SCRIPTS.glob("*.js"):
        text = script.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text)
