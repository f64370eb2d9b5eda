"""What defines a trained model: the task, the network, how it is trained and from which seed."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields

from attnlib.errors import check_at_least


@dataclass(frozen=True)
class ModelSpec:
    """Everything that goes into a trained model; equal specs are the same model, trained once."""

    task: str
    architecture: str
    steps: int  #: number of updates
    cell: str = "gru"
    width: int = 128
    batch_size: int = 128  #: sentence pairs an update
    #: Adam's, lowered to zero along half a cosine (ours; the available text gives none)
    learning_rate: float = 2e-3
    weight_decay: float = 0.0  #: L2 penalty added to the gradient
    clip: float = 1.0  #: largest norm of the gradient of all parameters together
    embedding_scale: float = 0.3  #: standard deviation of the embeddings at the start
    positions: str = "sinusoidal"  #: AO's position code; a recurrent network has none and ignores it
    #: draws the parameters and the order of the batches; the task's own data has a seed in its options
    seed: int = 0
    #: options of the task as sorted (name, value) pairs, so that the spec can be hashed
    task_options: tuple[tuple[str, object], ...] = ()

    def __post_init__(self) -> None:
        check_at_least(1, self, "steps", "width", "batch_size")

    @property
    def setting(self) -> str:
        """The spec in a few words, for messages and progress bars."""
        cell = "" if self.architecture == "AO" else f"-{self.cell}"
        return f"{self.task} {self.architecture}{cell} width {self.width} seed {self.seed}"

    @property
    def content(self) -> dict[str, object]:
        """What differs from the defaults, and task, architecture, steps and seed always, as plain JSON."""
        always = ("task", "architecture", "steps", "seed")
        differs = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name in always or getattr(self, field.name) != field.default
        }
        return json.loads(json.dumps(differs | {"task_options": dict(self.task_options)}))

    @property
    def front(self) -> str:
        """The readable part of its names."""
        return f"{self.task}-{self.architecture}-{self.cell}-w{self.width}-s{self.seed}"

    @property
    def roots(self) -> tuple[Callable, ...]:
        """The code that makes the model: training and what the task's name leads to."""
        from attnlib.training import evaluate
        from companion.data import registry
        from companion.runs import loop

        return (loop.train, loop.new_model, evaluate.evaluate, registry.builder(self.task))
