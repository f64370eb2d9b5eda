"""What defines a trained model: the task, the network, how it is trained and from which seed."""

from dataclasses import dataclass

from attnlib.errors import check_at_least

ENCODER_DECODER = "encoder_decoder"  # the training of a ModelSpec, companion/runs/encoder_decoder.py


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
    def front(self) -> str:
        """The readable part of its names."""
        return f"{self.task}-{self.architecture}-{self.cell}-w{self.width}-s{self.seed}"
