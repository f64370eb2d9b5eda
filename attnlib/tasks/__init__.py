"""What goes into the models: a Task with its Corpus and Vocabulary; ``collate`` gives a padded Batch."""

from attnlib.tasks.corpus import Batch, Corpus, collate, evaluation_batches, training_batches
from attnlib.tasks.task import Task
from attnlib.tasks.vocabulary import BOS, EOS, PAD, UNK, Vocabulary

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "UNK",
    "Batch",
    "Corpus",
    "Task",
    "Vocabulary",
    "collate",
    "evaluation_batches",
    "training_batches",
]
