"""The options of ``attnlib analyse``, for the command line and for Python: names, types, defaults, help.

Nothing heavy is imported, so that ``--help`` answers at once.
"""

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from typer import Option

from attnlib.errors import BadInput, check_known
from attnlib.files import readable

if TYPE_CHECKING:
    from attnlib.analysis.stream import Shard

OF_A_TEXT = ("source_language", "target_language", "prefix")
OF_A_PASS = ("kinds", "layers", "ignore_special")
OF_BATCHES = ("batch_size", "longest", "probed", "generate")
OF_A_MODEL = (*OF_A_TEXT, *OF_A_PASS, *OF_BATCHES, "device")
OF_A_CALL = ("out", "threads", "shard", "stage")


def _as_given(value: object) -> object:
    return value


listed = partial(Option, parser=_as_given, metavar="<str>")  # read when all options are there


@dataclass(frozen=True)
class Request:
    """What to analyse and how; BadInput where options do not go together."""

    out: Annotated[Path, Option(help="Folder of the report; a run that was cut short goes on there.")]
    model: Annotated[str | None, Option(help="Folder of a Hugging Face model, or its name.")] = None
    source: Annotated[Path | None, Option(help="Text, a sentence a line.")] = None
    target: Annotated[
        Path | None, Option(help="Its translation, line by line; none for a decoder or an encoder alone.")
    ] = None
    generate: Annotated[
        bool, Option("--generate", help="The model writes the target itself, the likeliest piece first.")
    ] = False
    traces: Annotated[
        Path | None, Option(help="Folder of safetensors that other code saved, in place of model and text.")
    ] = None
    source_language: Annotated[
        str | None, Option(help="For mBART, M2M100, NLLB: as their tokenizer writes it, such as en_XX.")
    ] = None
    target_language: Annotated[str | None, Option(help="Likewise, such as de_DE; both are needed.")] = None
    prefix: Annotated[
        str, Option(help='Put before every source line, such as T5\'s "translate English to German: ".')
    ] = ""
    kinds: Annotated[
        tuple,
        listed(help="Of attention: cross,encoder_self,decoder_self; a decoder or an encoder alone has one."),
    ] = ("cross",)
    layers: Annotated[tuple | None, listed(help="Layers, as in 0,4-6.", show_default="all")] = None
    heads: Annotated[tuple | None, listed(help="Heads, as in 0,4-6.", show_default="all")] = None
    ignore_special: Annotated[
        bool,
        Option(
            "--ignore-special",
            help="Leave out where a special token is read: end marks of the source, and the step at which "
            "the decoder reads its start mark. Unknown words stay.",
        ),
    ] = False
    batch_size: Annotated[int, Option(min=1, help="Pairs passed through the model at once.")] = 32
    longest: Annotated[int, Option(min=1, help="Pieces of a side; the rest is cut off.")] = 128
    method: Annotated[
        str, Option(help="least_squares: position, word and constant told apart; means: as the papers.")
    ] = "least_squares"
    interventions: Annotated[
        bool,
        Option("--interventions", help="See how far attention moves when parts of states are exchanged."),
    ] = False
    every: Annotated[int, Option(min=1, help="One batch in so many is held out, and judged.")] = 5
    probed: Annotated[int, Option(min=0, help="Batches of which the lexical probe is taken; it is slow.")] = 4
    sentences: Annotated[int, Option(min=0, max=12, help="Judged pairs on the page.")] = 12
    device: Annotated[str, Option(help="As torch names it: cpu, cuda.")] = "cpu"
    threads: Annotated[
        int | None, Option(min=1, help="Of the processor.", show_default="the fastest, measured")
    ] = None
    shards: Annotated[int, Option(min=1, help="Parts of the corpus, read on their own.")] = 1
    shard: Annotated[int | None, Option(min=0, help="Which one, from 0.", show_default="all")] = None
    stage: Annotated[str, Option(help="fit, judge or report: only this; all: as far as it goes.")] = "all"

    def __post_init__(self) -> None:
        from attnlib.analysis.passes import STAGES
        from attnlib.arrays import several
        from attnlib.decomposition.components import Method
        from attnlib.models.transformer import AttentionKind

        check_known("method", self.method, get_args(Method))
        check_known("stage", self.stage, (*STAGES, "report", "all"))
        words = {"kinds": lambda text: tuple(map(str.strip, text.split(",")))}
        for name, read in (words | {"layers": numbers, "heads": numbers}).items():
            own = getattr(self, name)
            object.__setattr__(self, name, read(own) if isinstance(own, str) else several(own))
        for name in ("out", "source", "target", "traces"):
            if (own := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(own))
        for kind in self.kinds:
            check_known("kind of attention", kind, get_args(AttentionKind))
        text = [given is not None for given in (self.model, self.source)]
        translation = self.target is not None or self.generate
        if not all(text) if self.traces is None else any((*text, translation)):
            raise BadInput("give --model, --source and --target, or --generate for it; or --traces alone")
        defaults = {field.name: field.default for field in fields(self)}
        chosen = [name for name in OF_A_MODEL if getattr(self, name) != defaults[name]]
        if self.traces is not None and chosen:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in chosen)
            raise BadInput(f"{options}: said of a model; what saved traces hold is looked at as a whole")
        try:
            readable(self.out).encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadInput(f"--out {str(self.out)!a} is not UTF-8: give the folder another name") from error
        if self.shards > 1 and self.shard is None and self.stage in STAGES:
            raise BadInput(
                f"--stage {self.stage} is done shard by shard: give --shard 0 to {self.shards - 1}"
            )

    def part(self, shard: int = 0) -> "Shard":
        from attnlib.analysis.stream import Shard

        return Shard(shard, self.shards, self.every)

    def settings(self, *names: str) -> dict:
        return {name: getattr(self, name) for name in names}


def numbers(text: str) -> tuple[int, ...]:
    """Numbers and ranges as the command line has them; BadInput for anything else.

    >>> numbers("0,4-6")
    (0, 4, 5, 6)
    """
    found: list[int] = []
    for word in text.split(","):
        first, dash, last = word.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise BadInput(f"{text!r} are no numbers; write them as in 0,4-6")
        found += range(int(first), int(last) + 1)
    return tuple(dict.fromkeys(found))
