"""The smallest settings at which each experiment runs all of its lines."""

from companion.results import registry
from companion.results.config import BaseConfig, override


def tiny(name: str, **changes: object) -> BaseConfig:
    """The settings of an experiment's tiny run, with some of them changed."""
    return override(registry.load(name).PROFILES["quick"], smallest(name) | changes)


def smallest(name: str) -> dict[str, object]:
    """What a tiny run changes of the quick one."""
    return TINY.get(name) or getattr(registry.load(name), "TINY", {})  # beside a figure that is new


ROUGH = {"seeds": 1, "width": 8, "steps": 3}
LADDER = ROUGH | {"task": "one_to_one", "fit_samples": 100}
COPIES = {"seeds": 2, "length": 4, "width": 8, "steps": 4, "every": 2}
SENTENCES = {"seeds": 2, "n_train": 300, "judged": 60, "width": 8, "steps": 3}
TINY: dict[str, dict] = {
    "agreement": {"training_part": 1,
        "seeds": 2, "frozen": 0, "steps": 10, "n_train": 60, "n_validation": 8, "width": 8,
        "embedding_width": 8, "translation_steps": 50, "train_pairs": 60, "validation_pairs": 8, "pieces": 60,
        "classification": "known_polarity", "translation": "known_lexicon",
    },
    "alignment_breakdown": LADDER,
    "along_training": SENTENCES | {
        "task": "reordering,copying_sample", "uniform": "copying_sample", "fewest_phrases": 2,
        "most_phrases": 3, "length": 5, "n_train": 80, "n_held_out": 20, "width": 6, "batch_size": 16,
        "snapshots_per_doubling": 1, "fitted": 40, "judged": 10,
    },
    "attention_matrices": LADDER,
    "context_bottleneck": SENTENCES | {"width": (6, 8), "longest": 5, "probed": (3, 4), "samples": 80},
    "dataset_sizes": {},
    "early_dynamics": {"sentences": 40, "seeds": 2, "iterations": 3, "widths": (64, 512), "pairs": 100},
    "fixed_permutation": COPIES | {"controls": 1, "coded_steps": 4},
    "interchange": LADDER | {"samples": 60},
    "multi_head": {
        "candidates": 2, "trials": 1, "seeds": 1, "heads": 2, "elsewhere": 1, "length": 4, "width": 8,
        "steps": 2, "every": 2, "followed": 2,
    },
    "one_step": SENTENCES | {"snapshots": 1},
    "one_vector": SENTENCES | {"digits": 3, "samples": 20},
    "optimal_attention": {
        "dataset": "known_lexicon", "texts": "known_polarity", "seeds": 2, "train_pairs": 0, "train_texts": 0,
        "validation_texts": 0, "width": 16, "steps": 51, "n_validation": 12, "samples": 5,
        "classifier_width": 4, "classifier_steps": 11,
    },
    "order_words": LADDER | {"task": "reordering_50,scan", "pairs": 6, "fit_pairs": 8},
    "path_length": SENTENCES | {"longest": 5, "snapshots": 1, "length": 4, "samples": 20},
    "permutation_copying": COPIES | {"controls": 1, "followed": 4, "sample_steps": 6},
    "probe_locality": COPIES | {"words": 6, "length": 6, "embedding_width": 4, "width": 3},
    "readout": LADDER,
    "regularisation": LADDER | {
        "samples": 60, "weight_decay": (0, 1e-4, 1e-3, 3e-3, 1e-2), "widths": 16, "length": (0.5, 2),
    },
    "resting_attention": {
        "data": "known_polarity", "beside": (), "seeds": 3, "n_train": 60, "n_validation": 20, "width": 3,
        "embedding_width": 4, "steps": 4,
    },
    "robustness": LADDER | {
        "task": "one_to_one,scan", "samples": 60, "widths": 16, "length": 2.0, "factor": "width,length",
    },
    "scoring_functions": SENTENCES | {
        "scoring": "dot,additive", "asked": "dot", "longest": 3, "judged": 40, "width": 6, "snapshots": 2,
        "samples": 200,
        "named": "luong,sutskever", "text_pairs": 60, "text_epochs": 1, "text_snapshots": 2, "text_width": 8,
    },
    "source_reversal": SENTENCES | {
        "longest": 6, "snapshots": 2, "one_length": 1, "aligned": "one_to_one,number_words",
    },
    "state_components": LADDER,
    "temporal_formation": LADDER,
    "temporal_share": LADDER | {"task": "reordering_0,reordering_50,reordering_100"},
    "transformer_heads": SENTENCES | {"fit_samples": 200, "snapshots": 1},
    "what_a_task_teaches": SENTENCES | {
        "longest": 7, "n_train": 200, "judged": 40, "snapshots": 1,
        "transformer_width": 8, "transformer_steps": 3,
    },
    "without_attention": ROUGH | {"length": "3,4", "words": 4, "fit_samples": 100},
    "word_alignment": ROUGH | {
        "task": "reordering_50", "tokens_of": "reordering_50", "fit_samples": 100, "judged_samples": 30,
        "iterations": 2,
    },
    "your_own_model": {"samples": 60, "batch_size": 6},
}  # fmt: skip
