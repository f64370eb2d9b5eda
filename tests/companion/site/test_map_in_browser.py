"""The interactive map in a browser: by keyboard, by mouse, along training, and with hostile words."""

import pytest

from notebooks.primer.one_step.attention_map import attention_map

ROWS = [
    {"step": step, "target_place": s, "source_place": t, "target": target, "source": source}
    | {"attention": float(t == (s + look) % 3), "probability": 0.5}
    for look, step in enumerate((0, 10))
    for s, target in enumerate(("x", "<script>document.title='broken'</script>", "z"))
    for t, source in enumerate(("a", "<b>b</b>", "c"))
]


@pytest.fixture
def map_page(chromium):
    page = chromium.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(f"<title>kept</title>{attention_map(ROWS)}{attention_map(ROWS[:9], place=2)}")
    yield page
    assert complaints == []
    assert page.title() == "kept"
    page.close()


def said(page):
    return page.locator("[aria-live]").first.inner_text()


def weights(page):
    return page.locator(".attention-map").first.locator("small").all_inner_texts()


def test_words_are_gone_to_by_keyboard_and_by_pointer(map_page):
    map_page.locator("button").first.focus()
    assert weights(map_page) == ["1.00", "0.00", "0.00"]
    map_page.keyboard.press("ArrowRight")
    assert weights(map_page) == ["0.00", "1.00", "0.00"]
    assert "<script>" in said(map_page)
    map_page.keyboard.press("ArrowLeft")
    map_page.keyboard.press("ArrowLeft")  # round the corner to the last word
    assert weights(map_page) == ["0.00", "0.00", "1.00"]
    pressed = map_page.locator(".attention-map").first.locator('button[aria-pressed="true"]')
    assert pressed.all_inner_texts() == ["z"]
    map_page.locator("button").nth(1).hover()
    assert weights(map_page) == ["0.00", "1.00", "0.00"]
    assert "on “<b>b</b>”" in said(map_page)


def test_the_slider_goes_on_in_training_and_the_table_follows(map_page):
    slider, table = map_page.locator("input[type=range]").first, map_page.locator("details").first
    table.locator("summary").click()
    row = table.locator("tbody tr").first.locator("td")
    assert row.all_inner_texts() == ["1.00", "0.00", "0.00"]
    style = row.first.evaluate(
        "cell => { const s = getComputedStyle(cell);"
        "return [parseFloat(s.paddingLeft) >= 6, s.textAlign, s.fontVariantNumeric]; }"
    )
    assert style == [True, "right", "tabular-nums"]
    assert map_page.locator("output").first.inner_text() == "0 updates"
    slider.focus()
    map_page.keyboard.press("ArrowRight")
    assert map_page.locator("output").first.inner_text() == "10 updates"
    assert slider.get_attribute("aria-valuetext") == "10 updates"
    assert weights(map_page) == row.all_inner_texts() == ["0.00", "1.00", "0.00"]
    assert table.locator("summary").inner_text() == "All weights as a table, after 10 updates"


def test_a_map_starts_at_the_word_it_is_given(map_page):
    second = map_page.locator(".attention-map").nth(1)  # it has one snapshot
    assert second.locator('button[aria-pressed="true"]').inner_text() == "z"
    assert second.locator("summary").inner_text() == "All weights as a table, after 0 updates"


def test_two_maps_do_not_touch_each_other(map_page):
    second = map_page.locator(".attention-map").nth(1)
    before = weights(map_page)
    second.locator("button").nth(1).click()
    assert second.locator("small").all_inner_texts() == ["0.00", "1.00", "0.00"]
    assert weights(map_page) == before
