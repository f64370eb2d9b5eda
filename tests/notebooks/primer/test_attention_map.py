"""The interactive map: its numbers, hostile words, and what it does under a keyboard and a mouse."""

import json
import re
from html.parser import HTMLParser

from notebooks.primer.one_step.attention_map import attention_map

HOSTILE = "</script><img src=x onerror=alert(1)>"


def rows_of(source, target, steps=(0, 10)):
    return [
        {"step": step, "target_place": s, "source_place": t, "target": own, "source": word}
        | {"attention": float(t == (s + look) % len(source)), "probability": 0.25 * (look + 1)}
        for look, step in enumerate(steps)
        for s, own in enumerate(target)
        for t, word in enumerate(source)
    ]


class Elements(HTMLParser):
    """Tags with their attributes, and texts, of a piece of HTML."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.open.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)

    def count(self, tag):
        return sum(own == tag for own, _ in self.open)


def data_of(text):
    return json.loads(re.search(r'application/json">(.*?)</script>', text, re.DOTALL)[1])


def test_words_are_text_and_never_markup():
    text = attention_map(rows_of([HOSTILE, "b"], ["&amp;", "<b>"]))
    found = Elements(text)
    assert (found.count("img"), found.count("script")) == (0, 2)
    assert {HOSTILE, "&amp;", "<b>"} <= set(found.texts)
    assert data_of(text)["source"] == [HOSTILE, "b"]


def test_numbers_are_those_of_the_rows():
    text = attention_map(rows_of(["a", "b", "c"], ["x", "y"]))
    data = data_of(text)
    assert data["attention"] == [[[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]]]
    assert data["probability"] == [[0.25, 0.25], [0.5, 0.5]]
    assert data["steps"] == [0, 10]
    cells = re.findall(r"<td>([\d.]+)</td>", text)
    assert cells == ["0.00", "1.00", "0.00", "0.00", "0.00", "1.00"]  # the last look


def test_maps_are_named_by_their_sentence_and_the_name_is_text():
    texts = [attention_map(rows_of(source, ["x"])) for source in (["i", "<eos>"], ['"><b>', "you"])]
    named = [attributes["aria-label"] for text in texts for _, attributes in Elements(text).open
             if attributes.get("role") == "group"]  # fmt: skip
    assert named == [
        "Attention, word by word, to “i”",
        'Attention, word by word, to “"><b> you”',
    ]
    assert not Elements(texts[1]).count("b")


def test_nothing_is_loaded_from_anywhere_and_each_map_has_its_own_name():
    text, other = (attention_map(rows_of(["a", word], ["x"])) for word in "bc")
    assert not re.search(r"https?:|//|@import|url\(", text)
    assert all("src" not in attributes for _, attributes in Elements(text).open)
    assert len({re.search(r'id="([\w-]+)"', one)[1] for one in (text, other)}) == 2
    assert text == attention_map(rows_of(["a", "b"], ["x"]))
    for needed in ('aria-live="polite"', "<summary>", 'scope="row"', 'type="range"', "aria-label"):
        assert needed in text  # it can be heard and reached
