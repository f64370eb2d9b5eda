"""The guided story in a browser: its numbers are torch's.

It works by pointer, keyboard and address, without scripts and on paper.
"""

import json
import re
from pathlib import Path

import pytest
import torch

from attnlib.decomposition import alignment_terms
from attnlib.models.corpus import Corpus, collate
from companion.results.result import Result
from notebooks.attend.alignment_breakdown import networks
from notebooks.attend.temporal_share.hero import PICTURE, hero
from notebooks.shared import story
from notebooks.shared.tasks.synthetic import interpret

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / story.PAGE).read_text(encoding="utf-8")
DATA = json.loads(re.search(r'<script type="application/json">(.*?)</script>', PAGE)[1])
COMMAND = DATA["command"].split()
AFTER = COMMAND.index("after")
STEPS = len(DATA["right"])
BOS, EOS = 1, 2
LARGEST = 150_000  # bytes of script, style, courses and pictures, beyond the networks that other pages have
LONGEST = 60  # words of a caption
SAMPLE = 300  # held-out commands that are counted, evenly spaced

RUN = """([source, options]) => Instruments.network("scan-AED").then(network => {
  const { attention, written, terms } = network.run(source, options);
  return { attention, written, terms };
})"""
COUNT = """commands => Instruments.network("scan-AED").then(network => {
  const off = [[true, true, false], [true, true, false], [false, false, false]];
  const counts = { perfect: 0, without: 0, turned: 0, after: 0, later: 0 };
  const same = (left, right) => JSON.stringify(left) === JSON.stringify(right);
  for (const { source, target, joined, joinedTarget, after } of commands) {
    const { written } = network.run(source);
    const perfect = same(written, target);
    counts.perfect += perfect;
    counts.without += same(network.run(source, { on: off }).written, target);
    if (!perfect || after < 0 || joinedTarget[0] === target[0]) continue;
    if (!same(network.run(joined).written, joinedTarget)) continue;
    const later = source.map((_, place) => place).filter(place => place > after);
    const first = places => network.run(source, { most: 1, swap: { words: joined, places } }).written[0];
    counts.turned += 1;
    counts.after += first([after]) === joinedTarget[0];
    counts.later += first(later) === joinedTarget[0];
  }
  return counts;
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("story")
    (folder / "_static").mkdir()
    (folder / "_static" / "instruments").symlink_to(ROOT / story.SCRIPTS)
    (folder / "index.html").write_text(story.alone(ROOT), encoding="utf-8")
    return folder


@pytest.fixture
def shown_story(opened, folder):
    """``shown_story(address="")`` is the story in a window, its network there."""

    def shown_story(address="", *, wait=True, **options):
        page = opened(folder / "index.html", address, reduced_motion="reduce", **options)
        if wait:
            page.wait_for_selector(".stage[data-network]")
        return page

    return shown_story


@pytest.fixture(scope="module")
def network():
    """The network of the page in double precision, its task and the tables of its components."""
    loaded, task, tables = networks.in_page("scan", "AED")
    return loaded.double(), task, {name: table.double() for name, table in tables.items()}


def ids_of(task, words):
    return [int(token) for token in task.source_vocabulary.encode(words)] + [EOS]


@torch.no_grad()
def torch_pass(network, words, written):
    """Attention (step, word) and terms (3, 3, step, word) of a command, the decoder reading ``written``."""
    model, task, tables = network
    source = task.source_vocabulary.encode(words)
    target = task.target_vocabulary.encode(written)
    batch = collate(Corpus.from_ids([source], [target]), [0])
    trace = model(batch)
    assert alignment_terms is networks.alignment_terms  # the library's decomposition
    return trace.attention[0], networks.terms_of(trace, batch, tables)[:, :, 0]


@torch.no_grad()
def torch_writes(network, words, swap=()):
    """Ids that torch writes one by one, and attention; states at ``swap`` are of the command with "and"."""
    model, task, _ = network
    source = torch.tensor([ids_of(task, words)])
    joined = torch.tensor([ids_of(task, ["and" if word == "after" else word for word in words])])
    states, state = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    others, _ = model.encode(joined, torch.ones_like(joined, dtype=torch.bool))
    for place in swap:
        states[0, place] = others[0, place]
    token, written, attention = BOS, [], []
    while token != EOS and len(written) < 50:
        state = model.decode(torch.tensor([[token]]), state)[:, -1]  # (1, width)
        weights = (states[0] @ state[0]).softmax(0)  # (word,)
        context = weights @ states[0]  # (width,)
        token = int(model.readout(torch.cat([state[0], context])).argmax())
        written.append(token)
        attention.append(weights)
    return written, torch.stack(attention)


def texts(page):
    return page.locator("svg.picture text").all_text_contents()


def numbers(strings):
    matches = re.findall(r"[−+-]?\d+(?:\.\d+)?", " ".join(strings))
    return [float(number.replace("−", "-")) for number in matches]


# -- the numbers -----------------------------------------------------------------------------------


def test_numbers_of_the_third_picture_are_torchs(shown_story, network):
    attention, terms = torch_pass(network, COMMAND, interpret(COMMAND))
    scores = terms.sum((0, 1))[0]
    page = shown_story("#story?step=3&shown=1")
    shown = texts(page)
    assert numbers(text for text in shown if re.fullmatch(r"\d+\.\d", text)) == pytest.approx(
        scores.tolist(), abs=0.051
    )
    percents = numbers(text for text in shown if text.endswith(" %"))
    assert percents == pytest.approx((100 * attention[0]).tolist(), abs=0.51)
    assert int(attention[0].argmax()) == len(COMMAND)  # the end mark, as the answer says


def test_the_nine_terms_of_the_fifth_picture_are_the_librarys(shown_story, network):
    _, terms = torch_pass(network, COMMAND, interpret(COMMAND))
    end, rival = len(COMMAND), 1
    expected = terms[:, :, 0, end] - terms[:, :, 0, rival]
    page = shown_story("#story?step=5&shown=1")
    shown = [text for text in texts(page) if re.fullmatch(r"[+−]\d+\.\d|0", text)]
    assert numbers(shown) == pytest.approx(expected.flatten().tolist(), abs=0.051)
    assert int(expected.argmax()) == 8  # notebook times notebook, as the answer says


def test_the_nine_terms_of_the_fifth_picture_add_up(shown_story, network):
    _, terms = torch_pass(network, COMMAND, interpret(COMMAND))
    end, rival = len(COMMAND), 1
    expected = terms[:, :, 0, end] - terms[:, :, 0, rival]
    page = shown_story("#story?step=5&shown=1")
    total = float(expected.sum())
    assert numbers([text for text in texts(page) if "add up" in text]) == pytest.approx([total], abs=0.051)


def test_the_answer_of_the_fifth_picture_has_the_librarys_numbers(network):
    _, terms = torch_pass(network, COMMAND, interpret(COMMAND))
    end, rival = len(COMMAND), 1
    expected = terms[:, :, 0, end] - terms[:, :, 0, rival]
    total = float(expected.sum())
    assert total - float(expected[2, 2]) < 0  # without it the end mark would lose
    answer = re.search(
        r"\*end\* scores ([\d.]+), \*twice\* ([\d.]+)\..*?difference of ([\d.]+)", PAGE, re.DOTALL
    )
    scores = terms.sum((0, 1))[0]
    assert [float(number) for number in answer.groups()] == pytest.approx(
        [float(scores[end]), float(scores[rival]), total], abs=0.051
    )
    assert f"Notebook times notebook, with {expected[2, 2]:.1f}." in PAGE


def test_only_the_notebook_of_the_end_mark_knows_of_after(shown_story, network):
    model, task, tables = network
    joined = ["and" if word == "after" else word for word in COMMAND]
    parts = []
    for words in (COMMAND, joined):
        source = torch.tensor([ids_of(task, words)])
        with torch.no_grad():
            states, _ = model.encode(source, torch.ones_like(source, dtype=torch.bool))
        clock, entry = tables["encoder.temporal"][len(COMMAND)], tables["encoder.chi"][EOS]
        parts.append(states[0, -1] - clock - entry)
    assert (parts[0] - parts[1]).abs().max() > 0.1
    shown = texts(shown_story("#story?step=4&shown=1"))
    assert [text for text in shown if text in ("the same", "different")] == [
        "the same",
        "the same",
        "different",
    ]


@pytest.mark.parametrize("swap", [[AFTER], [AFTER + 1, AFTER + 2]], ids=["after", "later words"])
def test_swapped_states_do_in_the_page_what_they_do_in_torch(shown_story, network, swap):
    _, task, _ = network
    joined = ids_of(task, ["and" if word == "after" else word for word in COMMAND])
    written, attention = torch_writes(network, COMMAND, swap)
    ran = shown_story().evaluate(RUN, [ids_of(task, COMMAND), {"swap": {"words": joined, "places": swap}}])
    assert ran["written"] == written
    torch.testing.assert_close(torch.tensor(ran["attention"]).double(), attention, atol=1e-5, rtol=0)


def test_the_seventh_picture_says_what_torch_writes(shown_story, network):
    _, task, _ = network
    words = task.target_vocabulary.words
    lines = []
    for swap in ([AFTER], [AFTER + 1, AFTER + 2]):
        written, _ = torch_writes(network, COMMAND, swap)
        lines.append(" ".join(words[token].removeprefix("I_").lower() for token in written[:-1]))
    shown = [text.strip() for text in texts(shown_story("#story?step=7&shown=1"))]
    assert [
        text for text in shown if len(text.split()) == 3 and set(text.split()) <= {"run", "jump"}
    ] == lines
    assert lines == ["jump run run", "run run run"]  # as the answer says


def sampled(task):
    """Held-out commands, evenly spaced, each with its twin that has "and" for "after", as ids."""
    held_out = task.held_out
    for place in list(range(0, len(held_out), len(held_out) // SAMPLE))[:SAMPLE]:
        words = [task.source_vocabulary.words[token] for token in held_out.source(place)]
        joined = ["and" if word == "after" else word for word in words]
        targets = [
            [int(token) for token in task.target_vocabulary.encode(interpret(command))] + [EOS]
            for command in (words, joined)
        ]
        yield {
            "source": ids_of(task, words),
            "target": targets[0],
            "joined": ids_of(task, joined),
            "joinedTarget": targets[1],
            "after": words.index("after") if "after" in words else -1,
        }


def test_counts_in_the_answers_are_those_of_the_network(shown_story, network):
    _, task, _ = network
    counts = shown_story().evaluate(COUNT, list(sampled(task)))
    page = " ".join(PAGE.split())
    assert f"The network carries out {counts['perfect']} of {SAMPLE} unseen commands perfectly" in page
    assert f"Without the notebook it gets {counts['without']} right." in page
    assert f"We tried {counts['turned']} such commands" in page
    assert counts["after"] == 0
    assert "swapping *after* changed the first action in none" in page
    assert f"swapping the words behind it in {counts['later']}" in page


def test_torch_counts_perfect_commands_alike(shown_story, network):
    _, task, _ = network
    few = list(sampled(task))[:40]
    counts = shown_story().evaluate(COUNT, few)
    perfect = 0
    for command in few:
        words = [task.source_vocabulary.words[token] for token in command["source"][:-1]]
        perfect += torch_writes(network, words)[0] == command["target"]
    assert counts["perfect"] == perfect


def test_courses_of_the_eighth_picture_are_the_committed_ones():
    text = (ROOT / story.LEARNING).read_text(encoding="utf-8")
    kept = json.loads(re.search(r"Instruments\.give\((.*)\);", text)[1])
    assert kept == story.learning(Result.load(ROOT / "results" / "paper" / "permutation_copying.json"))
    ways = [course["way"] for course in kept["networks"]]
    judged = kept["steps"].index(kept["judged"])
    slow = [course for course in kept["networks"] if course["accuracy"][judged] < 0.95]
    assert len(ways) == 20  # as the caption says
    assert [course["way"] for course in slow] == ["away"] * 11
    assert all(course["right"][judged] < 1 for course in slow)  # less than at uniform attention
    assert all(course["accuracy"][-1] > 0.999 for course in slow)


def test_pictures_that_are_kept_are_those_that_the_script_draws(shown_story):
    page = shown_story()
    for step in range(1, STEPS + 1):
        kept = (ROOT / story.PICTURES / f"{step}.html").read_text(encoding="utf-8")
        assert page.evaluate("step => Instruments.storyPicture(step)", step) in kept, f"run {story.__name__}"


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_places_in_kept_pictures_are_rounded_since_processors_differ_in_last_digits(step):
    kept = (ROOT / story.PICTURES / f"{step}.html").read_text(encoding="utf-8")
    assert re.findall(r' (?:x|y|width|height)="-?\d+\.\d{3,}', kept) == []


def test_the_hero_is_drawn_from_the_committed_result():
    result = Result.load(ROOT / "results" / "paper" / "temporal_share.json")
    assert (ROOT / PICTURE).read_text(encoding="utf-8") == hero(result)


# -- the reader ------------------------------------------------------------------------------------


def step_of(page):
    return page.locator(".bar .where").inner_text()


def test_a_guess_reveals_the_answer(shown_story):
    page = shown_story()
    answer = page.locator(".story-answer").first
    assert not answer.is_visible()
    assert texts(page).count("?") == 3
    page.locator("section > section").first.get_by_role("button", name="option a").click()
    assert "jump" in texts(page)
    assert texts(page).count("?") == 0


def test_a_guess_is_judged(shown_story):
    page = shown_story()
    answer = page.locator(".story-answer").first
    page.locator("section > section").first.get_by_role("button", name="option a").click()
    assert answer.inner_text() == "Not so. Answer 1."
    right = page.locator("section > section").first.locator("button.right")
    assert right.inner_text() == "option b"


def test_arrow_keys_show_before_they_go_on(shown_story):
    page = shown_story()
    page.keyboard.press("ArrowRight")
    assert page.locator(".story-answer").first.is_visible()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.where').textContent.startsWith('2')")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("document.querySelector('.where').textContent.startsWith('1')")


def test_scrolling_moves_the_picture(shown_story):
    page = shown_story(width=1280)
    page.locator("section > section").nth(4).scroll_into_view_if_needed()
    page.mouse.wheel(0, 500)
    page.wait_for_function("Number(document.querySelector('.where').textContent[0]) >= 5")
    assert "μ·μ" in texts(page) or "nine terms on" in texts(page)


def test_keys_in_quick_succession_are_all_followed(shown_story):
    page = shown_story()
    page.evaluate("""for (const _ of [1, 2, 3])
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }))""")
    page.wait_for_function("location.hash.includes('step=2') && location.hash.includes('shown=1')")


def test_the_view_is_in_the_address(shown_story):
    page = shown_story()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash.includes('step=2') && location.hash.includes('shown=1')")
    address = page.evaluate("location.hash")
    page = shown_story(address)
    page.wait_for_timeout(400)
    assert step_of(page) == f"2 of {STEPS}"
    assert "have read “after”" in texts(page)


def test_a_link_to_the_view_is_given_where_nothing_can_be_copied(shown_story):
    page = shown_story("#story?step=6&shown=1")
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', { value: { writeText: () => Promise.reject() } })"
    )
    page.get_by_role("button", name="Copy link").click()
    box = page.get_by_label("Link to this view")
    assert "#story?step=6&shown=1" in box.input_value()
    assert box.evaluate("element => element === document.activeElement")


def test_nonsense_in_the_address_is_survived(shown_story):
    page = shown_story("#story?step=99&shown=x&command=%3Cb%3E&swapped=abc&update=-4&notebook=x")
    assert step_of(page) == f"{STEPS} of {STEPS}"
    page = shown_story("#story?step=6&shown=1&command=%3Cb%3E")
    assert "run twice after jump" in texts(page)


def test_one_command_survives_without_the_notebook(shown_story):
    page = shown_story("#story?step=6&shown=1&notebook=0")
    assert page.locator("svg.picture .wrong").count() > 0
    page.locator(".tools select").select_option("walk after run")
    assert page.locator("svg.picture .wrong").count() == 0
    page.locator(".tools select").select_option("jump after walk")
    assert page.locator("svg.picture .wrong").count() > 0
    page.locator(".tools").get_by_role("button", name="on").click()
    assert page.locator("svg.picture text.wrong").count() == 0


def test_states_are_swapped_by_hand(shown_story):
    page = shown_story("#story?step=7&shown=1&swapped=000")
    assert page.locator("svg.picture .tile.wrong").count() == 0
    page.locator(".tools").get_by_role("button", name="end").click()
    assert page.locator("svg.picture .tile.wrong").count() > 0
    page.wait_for_function("location.hash.includes('swapped=001')")


def test_on_a_telephone_nothing_sticks_out(shown_story):
    page = shown_story(width=390, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_on_a_telephone_a_tap_answers(shown_story):
    page = shown_story(width=390, has_touch=True)
    page.locator("section > section").first.get_by_role("button", name="option b").tap()
    assert page.locator(".story-answer").first.inner_text() == "Yes. Answer 1."


def test_without_scripts_each_step_has_its_picture(shown_story):
    page = shown_story(wait=False, java_script_enabled=False)
    assert not page.locator(".story").is_visible()
    assert [picture.is_visible() for picture in page.locator(".story-picture svg").all()] == [True] * STEPS


def test_without_scripts_answers_are_shown(shown_story):
    page = shown_story(wait=False, java_script_enabled=False)
    assert page.locator(".story-answer").first.is_visible()


def test_on_paper_pictures_take_the_place_of_the_stage(shown_story):
    page = shown_story()
    assert not page.locator(".story-picture").first.is_visible()
    page.emulate_media(media="print")
    assert not page.locator(".story").is_visible()
    assert not page.get_by_role("button", name="option a").first.is_visible()
    assert page.locator(".printed").first.is_visible()
    assert page.locator(".printed").first.inner_text() == "option a"
    assert [picture.is_visible() for picture in page.locator(".story-picture").all()] == [True] * STEPS
    assert page.locator(".story-answer").first.is_visible()


def test_a_network_that_is_not_there_leaves_the_pictures(shown_story, folder):
    page = shown_story(wait=False)
    page.evaluate("document.querySelector('.story').classList.remove('live')")
    assert page.locator(".story-picture").first.is_visible()


def test_every_picture_says_what_it_shows(shown_story):
    page = shown_story()
    for step in range(1, STEPS + 1):
        picture = (ROOT / story.PICTURES / f"{step}.html").read_text(encoding="utf-8")
        assert len(re.search(r'aria-label="([^"]+)"', picture)[1]) > 40
    assert page.locator("svg.picture").get_attribute("aria-label").startswith("The network reads run twice")


def test_less_motion_is_respected(opened, folder):
    durations = []
    for motion in ("reduce", "no-preference"):
        page = opened(folder / "index.html", reduced_motion=motion)
        page.wait_for_selector(".stage[data-network]")
        mark = page.locator("svg.picture > g").first
        durations.append(mark.evaluate("element => getComputedStyle(element).transitionDuration"))
    assert durations[0] == "0s"
    assert durations[1] != "0s"


# -- the words and the weight ----------------------------------------------------------------------


def steps_of_page():
    return re.split(r"(?m)^## ", PAGE)[1:]


@pytest.mark.parametrize("step", range(STEPS))
def test_a_caption_is_short(step):
    text = steps_of_page()[step]
    caption, _, _ = text.partition("::::{div} story-question")
    words = re.sub(r"\{\w+\}`[^`]*`", "", caption.partition("\n")[2])
    assert len(words.split()) <= LONGEST


@pytest.mark.parametrize("step", range(STEPS))
def test_a_question_comes_before_its_answer(step):
    text = steps_of_page()[step]
    _, _, rest = text.partition("::::{div} story-question")
    question, _, answer = rest.partition("::::{div} story-answer")
    assert "**Guess first.**" in question
    assert len(re.findall(r"(?m)^- ", question)) > DATA["right"][step]
    assert f":file: _story/{step + 1}.html" in answer


def test_the_story_is_light():
    files = [ROOT / story.SCRIPTS / name for name in ("story.js", "story.css")]
    files += [
        ROOT / story.LEARNING,
        *(ROOT / story.PICTURES / f"{step}.html" for step in range(1, STEPS + 1)),
    ]
    assert sum(path.stat().st_size for path in files) <= LARGEST
