"""What the prose tells readers to type works."""

import re
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "book" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_the_snippet_for_own_states_gives_the_means_and_the_score():
    (snippet,) = blocks("how_to.md", "python")
    names: dict = {}
    exec(compile(snippet, "how_to.md", "exec"), names)

    states, tokens = names["encoder_states"].double().numpy(), names["source"].numpy()
    temporal = states.mean(axis=0)
    some = tokens[0, 0]
    centred = [states[b, t] - temporal[t] for b, t in np.argwhere(tokens == some)]
    parts = names["encoder_parts"]
    np.testing.assert_allclose(parts.temporal[3].numpy(), temporal, atol=1e-5)
    np.testing.assert_allclose(parts.input[0, 0].numpy(), np.mean(centred, axis=0), atol=1e-5)
    product = torch.einsum("btd,bsd->bts", names["decoder_parts"].temporal, parts.input)
    torch.testing.assert_close(names["terms"][0, 1], product)


def test_every_figure_and_option_that_the_prose_names_exists():
    told = "\n".join(blocks("how_to.md", "bash"))
    figures = set(re.findall(r"(?<!\S)(?:notebooks/)?(\w+/\w+)(?:\.md)?(?!\S)", told))
    assert figures
    assert [figure for figure in figures if not (ROOT / "notebooks" / f"{figure}.md").is_file()] == []
    for name in re.findall(r"-p (\w+)", told):
        assert re.search(
            rf"^{name} = ", (ROOT / "notebooks/attend/alignment_breakdown.md").read_text(), re.MULTILINE
        )
