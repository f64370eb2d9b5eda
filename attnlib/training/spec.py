"""What defines a trained model: the task, the network, how it is trained and from which seed."""

import json
from dataclasses import asdict, dataclass, fields

from attnlib.errors import BadInput


@dataclass(frozen=True)
class ModelSpec:
    """Everything that goes into a trained model; equal specs are the same model, trained once.

    Attributes:
        task_options: options of the task as sorted (name, value) pairs, so that the spec can be hashed.
        steps: number of updates; batch_size: sentence pairs an update.
        learning_rate: Adam's, lowered to zero along half a cosine (our choice; the text at hand gives none).
        weight_decay: L2 penalty added to the gradient.
        clip: largest norm of the gradient of all parameters together.
        embedding_scale: standard deviation of the embeddings at the start.
        positions: AO's position code; a recurrent network has none and ignores it.
        seed: draws the parameters and the order of the batches; the task's own data has a seed in its
            options.
    """

    task: str
    architecture: str
    steps: int
    cell: str = "gru"
    width: int = 128
    batch_size: int = 128
    learning_rate: float = 2e-3
    weight_decay: float = 0.0
    clip: float = 1.0
    embedding_scale: float = 0.3
    positions: str = "sinusoidal"
    seed: int = 0
    task_options: tuple[tuple[str, object], ...] = ()

    def __post_init__(self) -> None:
        for name in ("steps", "width", "batch_size"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")

    @property
    def setting(self) -> str:
        """The spec in a few words, for messages and progress bars."""
        cell = "" if self.architecture == "AO" else f"-{self.cell}"
        return f"{self.task} {self.architecture}{cell} width {self.width} seed {self.seed}"

    def to_json(self) -> str:
        """One line of JSON that :meth:`from_json` turns into an equal spec."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ModelSpec":
        """The spec that :meth:`to_json` wrote.

        Raises:
            BadInput: the text is not an object with the spec's fields.
        """
        content = json.loads(text)
        unknown = set(content) - {field.name for field in fields(cls)}
        if unknown:
            raise BadInput(
                f"unknown fields {sorted(unknown)} in a model spec; it has {[f.name for f in fields(cls)]}"
            )
        content["task_options"] = tuple((name, value) for name, value in content.get("task_options", ()))
        return cls(**content)
