"""Files and options of any kind, for alignments, sides of a text and writing: used, or refused in a line."""

import zipfile
from pathlib import Path

import pytest
from hypothesis import strategies as st

from attnlib.alignment.gold import read_gold
from attnlib.report.pretrained import Checkpoint
from attnlib.report.texts import ParallelText
from attnlib.text_files import read_lines, read_pairs
from tests.attnlib.analysis import builders
from tests.e2e.faults.test_faults import JSON, TEXTS, outcome, tried

pytestmark = pytest.mark.slow

LINKS = st.sampled_from(["0-0", "1-2", "2p1", "0-0 1-1", "1 1 1 S", "2 3 1 P", '{"alignment": [[0, 1]]}', ""])


@tried(st.lists(LINKS | TEXTS, max_size=4), st.sampled_from([None, 0, 1, 2]))
def test_gold_links(tmp_path, lines, first):
    """Links that are read count from 0, and a line of Pharaoh's is a pair."""
    path = tmp_path / "gold"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    alignments = outcome("gold links", lambda: read_gold(path, first=first))
    for gold in alignments.links if alignments is not None else ():
        assert gold is None or (gold.sure <= gold.possible and min(min(link) for link in gold.possible) >= 0)


def zipped(path, *, texts):
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(texts):
            archive.writestr(f"b.{number}", f"a {number}\nb\n")
    return path.read_bytes()


MEMORY = """<tmx><body><tu><tuv xml:lang="de"><seg>a</seg></tuv><tuv xml:lang="en"><seg>b</seg></tuv></tu>
</body></tmx>"""
CONTENTS = {"t.tsv": "de\ten\na\tb\nc\td\n", "t.csv": 'de,en\n"a",b\nc,"d\ne"\n', "m.tmx": MEMORY}
PARTS = st.sampled_from(["1", "2", "3", "0", "de", "en", "b.0", "b.1"]) | TEXTS


@tried(st.sampled_from([*CONTENTS, "z.zip"]), PARTS, PARTS, st.integers(0, 200), st.binary(max_size=3))
def test_sides_of_a_file(tmp_path, name, source, target, place, damage):
    """Two named sides of a file that may be damaged are what each is read alone, or are refused."""
    path = tmp_path / name
    content = CONTENTS[name].encode() if name in CONTENTS else zipped(path, texts=place % 4)
    path.write_bytes(content[:place] + damage + content[place + len(damage) :] if damage else content)
    sides = [Path(f"{path}#{part}") for part in (source, target)]
    pairs = outcome("sides of a file", lambda: list(read_pairs(*sides)))
    if pairs is not None:
        for side, read_together in zip(sides, zip(*pairs, strict=True), strict=False):
            assert [line for line in read_together if line is not None] == list(read_lines(side))


NAMES = ["num_beams", "do_sample", "temperature", "top_k", "top_p", "repetition_penalty", "length_penalty"]
NAMES += [
    "no_repeat_ngram_size",
    "bad_words_ids",
    "forced_eos_token_id",
    "seed",
    "min_length",
    "eos_token_id",
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    pytest.importorskip("transformers", reason="checkpoints are read with transformers")
    folder = tmp_path_factory.mktemp("model")
    text = builders.text_of(folder)
    read = Checkpoint.load(str(builders.save_checkpoint(folder / "tiny")))
    return read, next(iter(read.stream(ParallelText(text.source, text.target)).batches())).tokens


@pytest.mark.filterwarnings("ignore")  # transformers warns of options that have no effect together
@tried(st.dictionaries(st.sampled_from(NAMES), JSON | st.integers(-2, 5), max_size=3))
def test_options_of_writing(checkpoint, options):
    """What is written ends within the longest, or the options are refused."""
    read, tokens = checkpoint
    written = outcome("options of writing", lambda: read.write(tokens, 5, options))
    assert written is None or written.target.shape[1] <= 5
