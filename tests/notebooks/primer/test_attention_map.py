"""The interactive map: its numbers, hostile words, and what can be heard and reached."""

import html
import json
import re

from notebooks.primer.one_step.attention_map import attention_map

HOSTILE = "</script><img src=x onerror=alert(1)>"


def rows_of(source, target, steps=(0, 10)):
    return [
        {"step": step, "target_place": s, "source_place": t, "target": own, "source": word}
        | {"attention": float(t == (s + snapshot) % len(source)), "probability": 0.25 * (snapshot + 1)}
        for snapshot, step in enumerate(steps)
        for s, own in enumerate(target)
        for t, word in enumerate(source)
    ]


def data_of(text):
    return json.loads(re.search(r'application/json">(.*?)</script>', text, re.DOTALL)[1])


def test_words_are_text_and_never_markup():
    text = attention_map(rows_of([HOSTILE, '"><b>'], ["&amp;", "<eos>"]))
    assert (text.count("<img"), text.count("<script"), text.count("<b>")) == (0, 2, 0)
    for word in (HOSTILE, '"><b>', "&amp;"):
        assert f">{html.escape(word)}</" in text
    assert data_of(text)["source"] == [HOSTILE, '"><b>']
    assert f'aria-label="Attention, word by word, to “{html.escape(HOSTILE)} &quot;&gt;&lt;b&gt;”"' in text


def test_numbers_are_those_of_the_rows():
    text = attention_map(rows_of(["a", "b", "c"], ["x", "y"]))
    data = data_of(text)
    assert data["attention"] == [[[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]]]
    assert data["probability"] == [[0.25, 0.25], [0.5, 0.5]]
    assert data["steps"] == [0, 10]
    cells = re.findall(r"<td>([\d.]+)</td>", text)
    assert cells == ["0.00", "1.00", "0.00", "0.00", "0.00", "1.00"]  # the last snapshot


def test_nothing_is_loaded_from_anywhere_and_each_map_has_its_own_name():
    text, other = (attention_map(rows_of([word, "<eos>"], ["x"])) for word in "bc")
    assert not re.search(r"https?:|//|@import|url\(|<[^<>]*\ssrc=", text)
    assert len({re.search(r'id="([\w-]+)"', one)[1] for one in (text, other)}) == 2
    assert text == attention_map(rows_of(["b", "<eos>"], ["x"]))
    for needed in ('aria-live="polite"', "<summary>", 'scope="row"', 'type="range"', "to “b”"):
        assert needed in text  # it can be heard and reached; the end mark is no word of the sentence
