"""How many marks the paper's sources have, by its random baseline (Snell et al. 2021, Tables 5 to 8).

    python benchmarks/source_marks.py          # a minute, most of it for the pieces of three sets

Chance is the mean of ⌈5 % L⌉ / L over the words to write, where L positions count the marks of the source:
so it tells how many there are. Printed are shuffles: the standard error is that of one, a position drawn for
every word, and for training that of drawing as many pairs as there are to validate on. A set is printed twice
on each part (by accuracy and by BLEU), and the difference of the two says how far printed numbers scatter
beside the draw of pairs that both share. Of IWSLT14 our pieces are learned from fewer pairs than the paper's.
"""

from math import exp

import numpy as np
import torch

from attnlib.models.corpus import Corpus
from companion.book.project import find_root
from companion.claims.model import read_tables
from companion.data.parallel import available, read_translation
from companion.data.sources import cache_folder
from notebooks.learn.dataset_sizes.trainings.text_sizes import MARKS_WRITTEN, chances
from notebooks.shared.pieces import piece_corpus

TITLES = {"multi30k_en_de": "Multi30k", "multi30k_de_en": "Multi30k", "iwslt14_de_en": "IWSLT14"}
TABLES = {"validation": ("5", "6"), "train": ("7", "8")}
MARKS = (1, 2)


def weighed(corpus: Corpus, marks: int, pairs: int) -> tuple[float, float, float]:
    """Mean chance, the standard error of one shuffle of so many pairs, and that of drawing the pairs."""
    of_pair = chances(torch.from_numpy(corpus.source_lengths), marks).numpy()
    rows = corpus.target_lengths + MARKS_WRITTEN
    mean = (of_pair * rows).sum() / rows.sum()
    shuffle = np.sqrt((of_pair * (100 - of_pair) * rows).sum() / rows.sum() / (pairs * rows.mean()))
    drawn = 0.0
    if pairs < len(corpus):
        drawn = np.sqrt(((of_pair - mean) ** 2 * rows**2).mean() / pairs) / rows.mean()
    return float(mean), float(shuffle), float(drawn)


def misfit(published: np.ndarray, mean: float, shuffle: float, drawn: float) -> float:
    """χ² of numbers that share their pairs and have a shuffle each."""
    covariance = shuffle**2 * np.eye(len(published)) + drawn**2
    return float((published - mean) @ np.linalg.solve(covariance, published - mean))


def main() -> None:
    tables = read_tables(find_root() / "claims/published/snell2021_tables.csv")
    entries = [entry for entry in tables.entries if entry.quantity == "A_baseline"]
    numbers = {(entry.table, entry.dataset): float(entry.value) for entry in entries}
    print("set | part | printed | chance with 1 and 2 marks | standard error: one shuffle, the pairs")
    for name in (name for name in TITLES if available(name)):
        data = piece_corpus(read_translation(name), folder=cache_folder() / "pieces")
        shuffles, repeated = dict.fromkeys(MARKS, 0.0), dict.fromkeys(MARKS, 0.0)
        published = {
            part: np.array([numbers[table, TITLES[name]] for table in both]) for part, both in TABLES.items()
        }
        # printed to two decimals, so that it cannot scatter less than their rounding
        scatter = max(0.01, float(np.sqrt(np.mean([np.diff(two)[0] ** 2 / 2 for two in published.values()]))))
        for part, both in published.items():
            found = {marks: weighed(getattr(data, part), marks, len(data.validation)) for marks in MARKS}
            for marks, (mean, shuffle, drawn) in found.items():
                shuffles[marks] += misfit(both, mean, shuffle, drawn)
                repeated[marks] += misfit(both, mean, scatter, drawn)
            means = ", ".join(f"{mean:.2f}" for mean, *_ in found.values())
            _, shuffle, drawn = found[2]
            print(f"{name} | {part} | {', '.join(map(str, both))} | {means} | {shuffle:.2f}, {drawn:.2f}")
        for words, chi in (("one shuffle", shuffles), (f"a scatter of {scatter:.2f}", repeated)):
            ratio = exp((chi[1] - chi[2]) / 2)
            times = f"{ratio:.3g}" if ratio < 1e6 else "over a million"
            both = f"{chi[1]:.1f} with one mark, {chi[2]:.1f} with two"
            print(f"  by {words}: χ² of four numbers {both}; two are {times} times as likely")


if __name__ == "__main__":
    main()
