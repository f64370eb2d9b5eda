"""What the prose tells readers to type works."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[3]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_the_snippet_for_own_states_gives_the_means_and_the_score():
    _, snippet = blocks("book/how_to.md", "python")  # the first is tested with the checkpoints
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
    (snippet,) = blocks("README.md", "python")
    rng = torch.Generator().manual_seed(0)
    width, source_vocabulary, target_vocabulary, longest_source, longest_target = 8, 9, 7, 5, 4
    names = {
        "width": width,
        "source_vocabulary": source_vocabulary,
        "target_vocabulary": target_vocabulary,
        "longest_source": longest_source,
        "longest_target": longest_target,
        "source": torch.randint(0, source_vocabulary, (3, 5), generator=rng),
        "target_read": torch.randint(0, target_vocabulary, (3, 4), generator=rng),
        "source_mask": torch.ones(3, 5, dtype=torch.bool),
        "target_mask": torch.ones(3, 4, dtype=torch.bool),
        "encoder_states": torch.randn(3, 5, width, dtype=torch.float64, generator=rng),
        "decoder_states": torch.randn(3, 4, width, dtype=torch.float64, generator=rng),
    }
    names["training"] = [SimpleNamespace(**names)]
    exec(compile(snippet, "README.md", "exec"), names)
    score = torch.einsum("btd,bsd->bts", names["decoder_states"], names["encoder_states"])
    torch.testing.assert_close(names["terms"].sum(dim=(0, 1)), score)


def test_every_figure_and_option_that_the_prose_names_exists():
    told = "\n".join(blocks("book/how_to.md", "bash"))
    figures = set(re.findall(r"(?:attnlib run |notebooks/)(\w+/\w+)", told))
    assert figures
    assert [figure for figure in figures if not (ROOT / "notebooks" / f"{figure}.md").is_file()] == []
    for name in re.findall(r"-p (\w+)", told):
        assert re.search(
            rf"^{name} = ", (ROOT / "notebooks/attend/alignment_breakdown.md").read_text(), re.MULTILINE
        )


def test_the_page_on_where_it_went_leads_to_part_iv_and_ends_in_commands_that_exist():
    page = (ROOT / "book/where_it_went.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\((beyond/\w+)\.ipynb\)", page))
    assert linked
    assert linked <= {f"beyond/{path.stem}" for path in (ROOT / "notebooks/beyond").glob("*.md")}
    commands = re.findall(r"`attnlib run (\S+)((?: -p \w+=\w+)*)`", page.partition("## Try next")[2])
    assert commands
    for figure, given in commands:
        source = (ROOT / f"notebooks/{figure}.md").read_text(encoding="utf-8")
        for name in re.findall(r"-p (\w+)=", given):
            assert re.search(rf"^{name} = ", source, re.MULTILINE), (figure, name)


def test_the_opener_of_part_iii_leads_to_chapters_that_are_there():
    page = (ROOT / "book/two_stages.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"{doc}`(learn/\w+)`", page))
    assert len(linked) > 5
    assert linked <= {f"learn/{path.stem}" for path in (ROOT / "notebooks/learn").glob("*.md")}


def test_links_from_chapter_to_chapter_lead_to_built_notebooks():
    """The site is made of executed notebooks, so that a link to the source of one leads nowhere."""
    chapters = sorted((ROOT / "notebooks").rglob("*.md"))
    linked = [
        (chapter, link)
        for chapter in chapters
        for link in re.findall(r"\]\(([\w./]+\.(?:md|ipynb))\)", chapter.read_text(encoding="utf-8"))
        if "book/" not in link
    ]
    assert linked
    pages = {path.relative_to(ROOT / "notebooks").with_suffix(".ipynb") for path in chapters}
    pages |= {path.relative_to(ROOT / "book") for path in (ROOT / "book").rglob("*.md")}
    missing = [
        f"{chapter.name}: {link}"
        for chapter, link in linked
        if (chapter.parent / link).resolve().relative_to(ROOT / "notebooks") not in pages
    ]
    assert not missing
