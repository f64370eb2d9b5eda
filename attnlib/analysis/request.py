"""What ``attnlib analyse`` is asked, and what the work is made of."""

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path

from attnlib.analysis.checkpoint import Checkpoint
from attnlib.analysis.page import Name
from attnlib.analysis.parallel_text import ParallelText
from attnlib.analysis.readings import STAGES, Keep
from attnlib.analysis.stream import Part, Stream
from attnlib.errors import BadInput, UnknownName
from attnlib.models.transformer import AttentionKind

OF_A_TEXT = ("source_language", "target_language", "prefix")
OF_A_PASS = ("kinds", "layers", "ignore_special")
OF_BATCHES = ("batch_size", "longest", "probed")
OF_A_MODEL = (*OF_A_TEXT, *OF_A_PASS, *OF_BATCHES, "device")


@dataclass(frozen=True)
class Request:
    """What is asked on the command line, see ``attnlib analyse --help``."""

    out: Path
    model: str | None = None
    source: Path | None = None
    target: Path | None = None
    traces: Path | None = None
    source_language: str | None = None
    target_language: str | None = None
    prefix: str = ""
    kinds: tuple[AttentionKind, ...] = ("cross",)
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    ignore_special: bool = False
    batch_size: int = 32
    longest: int = 128
    every: int = 5
    probed: int = 4
    device: str = "cpu"
    shards: int = 1
    shard: int | None = None
    stage: str = "all"

    def __post_init__(self) -> None:
        if self.stage not in (*STAGES, "report", "all"):
            raise UnknownName("stage", self.stage, (*STAGES, "report", "all"))
        text = [given is not None for given in (self.model, self.source, self.target)]
        if not all(text) if self.traces is None else any(text):
            raise BadInput("give --model, --source and --target; or --traces alone")
        silent = {field.name: field.default for field in fields(self)}
        chosen = [name for name in OF_A_MODEL if getattr(self, name) != silent[name]]
        if self.traces is not None and chosen:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in chosen)
            raise BadInput(f"{options}: said of a model; what saved traces hold is looked at as a whole")
        try:
            str(self.out).encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadInput(f"--out {str(self.out)!a} is not UTF-8: give the folder another name") from error
        if self.shards > 1 and self.shard is None and self.stage in STAGES:
            raise BadInput(
                f"--stage {self.stage} is done shard by shard: give --shard 0 to {self.shards - 1}"
            )

    def part(self, shard: int = 0) -> Part:
        """A shard of the corpus."""
        return Part(shard, self.shards, self.every)


def numbers(text: str | None) -> tuple[int, ...] | None:
    """Numbers and ranges as the command line has them.

    >>> numbers("0,4-6")
    (0, 4, 5, 6)

    Raises:
        BadInput: anything else.
    """
    if text is None:
        return None
    found: list[int] = []
    for word in text.split(","):
        first, dash, last = word.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise BadInput(f"{text!r} are no numbers; write them as in 0,4-6")
        found += range(int(first), int(last) + 1)
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Job:
    """What a request comes to.

    Attributes:
        stream: the corpus, through the model.
        keep: where parts are kept.
        about: what the report tells; shown: the model's name in its title.
        name: the word of an id, None where ids are all there is.
        batches: of the whole corpus.
        memory: what a batch takes, in words; empty where it is not known.
    """

    stream: Stream
    keep: Keep
    about: dict[str, str]
    shown: str
    name: Name | None
    batches: int
    memory: str = ""


def job_of(request: Request) -> Job:
    """The job of a request.

    Raises:
        BadInput: a model, files or a folder that cannot be used.
    """
    return _of_traces(request) if request.traces is not None else _of_checkpoint(request)


def _of_traces(request: Request) -> Job:
    stream = Stream.saved(request.traces)
    digest = _digest_of_files(sorted(request.traces.glob("*.safetensors")))  # shared weights as well
    shown = f"saved traces of {request.traces.name}"
    return Job(stream, _keep(request, {"traces": digest}), {"Model": shown}, shown, None, len(stream.batches))


def _of_checkpoint(request: Request) -> Job:
    text = ParallelText(request.source, request.target)
    lines, digests = text.checked()
    told, chosen, sizes = (
        {name: getattr(request, name) for name in names} for names in (OF_A_TEXT, OF_A_PASS, OF_BATCHES)
    )
    checkpoint = Checkpoint.load(request.model, request.device, **told)
    return Job(
        checkpoint.stream(text, **chosen, **sizes),
        _keep(request, digests | {"model": checkpoint.digest()} | told | chosen | sizes),
        checkpoint.about | text.about,
        checkpoint.shown,
        checkpoint.word,
        -(-lines // request.batch_size),
        _memory(checkpoint, request, chosen),
    )


def _keep(request: Request, asked: dict) -> Keep:
    return Keep(request.out / "parts", asked | {"heads": request.heads})


def _memory(checkpoint: Checkpoint, request: Request, chosen: dict) -> str:
    adapter = checkpoint.adapter(**chosen)
    size = (request.batch_size, request.longest, request.longest)
    own, every = (adapter.pass_bytes(*size, every_layer=all_of_them) for all_of_them in (False, True))
    tables = adapter.table_bytes(request.longest)
    more = "" if own == every else f" ({every / 1e6:,.0f} MB with all layers)"
    return (
        f"beside the model: at most {own / 1e6:,.0f} MB are caught of a batch{more}; tables of all words "
        f"would take {tables / 1e6:,.0f} MB, twice that while they are merged or judged by"
    )


def _digest_of_files(paths: list[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            found.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()
