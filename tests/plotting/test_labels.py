"""Labels beside points: another side where the first is taken, and none where all are."""

from matplotlib.figure import Figure

from attnlib.plotting.labels import write_labels


def written(*labels):
    axes = Figure().subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    write_labels(axes, [(x, y, text, "black") for x, y, text in labels])
    return {text.get_text(): (text.get_ha(), text.get_va()) for text in axes.texts}


def test_a_label_that_would_cover_another_goes_to_another_side_or_is_left_out():
    found = written(*((0.5, 0.5, name) for name in "abcde"), (0.9, 0.9, "far"))
    assert found == {
        "a": ("left", "baseline"),
        "b": ("left", "top"),
        "c": ("right", "baseline"),
        "d": ("right", "top"),
        "far": ("left", "baseline"),
    }


def test_a_label_left_of_its_point_stays_inside_the_frame():
    assert set(written((0.05, 0.5, "one"), (0.05, 0.5, "two"), (0.05, 0.5, "long"))) == {"one", "two"}
