"""What several tests of the command share: a checkpoint with a text, a report of it, counted lines."""

import pytest

from tests.attnlib.analysis.analysis_builders import analysed, save_checkpoint, text_of


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A checkpoint, and 24 pairs: six batches of four."""
    folder = tmp_path_factory.mktemp("corpus")
    save_checkpoint(folder / "tiny")
    text_of(folder)
    return folder


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A report of the corpus, and what was said."""
    out = tmp_path_factory.mktemp("whole")
    return out, analysed(corpus, out)


@pytest.fixture
def counted(monkeypatch):
    """The source lines that went through the tokenizer, in order."""
    seen = []
    kind = pytest.importorskip("transformers").PreTrainedTokenizerFast
    call = kind.__call__

    def counting(self, text=None, text_target=None, **more):
        seen.extend(text or ())
        return call(self, text=text, text_target=text_target, **more)

    monkeypatch.setattr(kind, "__call__", counting)
    return seen
