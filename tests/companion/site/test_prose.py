"""What the prose tells readers to type works, and links from page to page lead somewhere."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[3]
PROSE = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "book").rglob("*.md"))}
CHAPTERS = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "notebooks").rglob("*.md"))}


def snippets(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_the_snippet_for_own_states_gives_the_means_and_the_score():
    _, snippet = snippets("book/how_to.md")  # the first is tested with the checkpoints
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


def test_the_snippet_of_the_readme_runs_on_states_of_one_batch():
    (snippet,) = snippets("README.md")
    rng = torch.Generator().manual_seed(0)
    sizes = {"source_vocabulary": 9, "target_vocabulary": 7, "longest_source": 5, "longest_target": 4}
    names = sizes | {
        "width": 8,
        "source": torch.randint(0, 9, (3, 5), generator=rng),
        "target_read": torch.randint(0, 7, (3, 4), generator=rng),
        "source_mask": torch.ones(3, 5, dtype=torch.bool),
        "target_mask": torch.ones(3, 4, dtype=torch.bool),
        "encoder_states": torch.randn(3, 5, 8, dtype=torch.float64, generator=rng),
        "decoder_states": torch.randn(3, 4, 8, dtype=torch.float64, generator=rng),
    }
    names["training"] = [SimpleNamespace(**names)]
    exec(compile(snippet, "README.md", "exec"), names)
    score = torch.einsum("btd,bsd->bts", names["decoder_states"], names["encoder_states"])
    torch.testing.assert_close(names["terms"].sum(dim=(0, 1)), score)


def test_commands_in_the_prose_name_figures_and_parameters_that_exist():
    told = "\n".join(PROSE.values())
    commands = re.findall(r"attnlib run (\w+/\w+)([^`\n]*)", told)
    assert len(commands) > 5
    for figure, given in [*commands, *((name, "") for name in re.findall(r"notebooks/(\w+/\w+)\.md", told))]:
        source = CHAPTERS[ROOT / f"notebooks/{figure}.md"]
        for name in re.findall(r"-p (\w+)=", given):
            assert re.search(rf"^{name} = ", source, re.MULTILINE), (figure, name)


def test_links_from_page_to_page_lead_to_built_notebooks_and_prose():
    """The site is made of executed notebooks, so that a link to the source of one leads nowhere."""
    pages = {path.relative_to(ROOT / "notebooks").with_suffix(".ipynb") for path in CHAPTERS}
    pages |= {path.relative_to(ROOT / "book") for path in PROSE}
    missing, linked = [], 0
    for path, text in (PROSE | CHAPTERS).items():
        room = ROOT / ("book" if path in PROSE else "notebooks")
        links = re.findall(r"\]\(([\w./]+\.(?:md|ipynb))[)#]", text)
        links += [f"{name}.ipynb" for name in re.findall(r"{doc}`(\w+/\w+)`", text)]
        for link in links:
            linked += 1
            if (path.parent / link).resolve().relative_to(room) not in pages:
                missing.append((path.name, link))
    assert linked > 20
    assert missing == []
