"""The options of ``attnlib analyse`` and ``attnlib align``: names, types, defaults, help.

No large package is imported at the top, so that ``--help`` responds at once.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from typer import Option

from attnlib.errors import BadInput, check_known

Stage = Literal["fit", "judge", "report", "all"]

# Names of options, by topic.
TEXT_OPTIONS = ("source_language", "target_language", "prefix", "target_tokenizer")
PASS_OPTIONS = ("kinds", "layers", "ignore_special")
BATCH_OPTIONS = ("batch_size", "longest", "probed", "generate", "generation")
OWN_OPTIONS = ("sentence", "translation")  # no number of the tables depends on them
MODEL_OPTIONS = (*TEXT_OPTIONS, *PASS_OPTIONS, *BATCH_OPTIONS, *OWN_OPTIONS, "device")
CALL_OPTIONS = ("out", "threads", "shard", "stage", "tables")  # no number depends on them
_PATHS = ("out", "source", "target", "traces")
_SYMMETRISE = "grow-diag-final-and"  # the default for links of two directions


def _unparsed(value: object) -> object:
    return value


listed = partial(Option, parser=_unparsed, metavar="<str>")  # parsed by AnalyseOptions


# Options that both commands have.
SourceLanguage = Annotated[
    str | None, Option(help="For mBART, M2M100, NLLB: as their tokenizer writes it, such as en_XX.")
]
TargetLanguage = Annotated[str | None, Option(help="Likewise, such as de_DE; both are needed.")]
Prefix = Annotated[
    str, Option(help='Put before every source line, such as T5\'s "translate English to German: ".')
]
TargetTokenizer = Annotated[
    str | None, Option(help="Folder or name of the target's tokenizer, if each side has one.")
]
Generation = Annotated[
    str | None,
    Option(
        help="How it writes, as in num_beams=4,length_penalty=0.6 or do_sample=true,top_k=10,seed=1; "
        "config: as its generation config says."
    ),
]
BatchSize = Annotated[int, Option(min=1, help="Pairs passed through the model at once.")]
Longest = Annotated[int, Option(min=1, help="Pieces of a side; the rest is cut off.")]
Device = Annotated[str, Option(help="As torch names it: cpu, cuda.")]


@dataclass(frozen=True)
class AnalyseOptions:
    """The options of an analysis; each is described by its help text.

    Raises:
        BadInput: options that cannot be combined, or an unknown value of an option.
    """

    out: Annotated[Path, Option(help="Folder of the report; a run that was cut short goes on there.")]
    model: Annotated[str | None, Option(help="Folder of a Hugging Face model, or its name.")] = None
    source: Annotated[Path | None, Option(help="Text, a sentence a line.")] = None
    _: KW_ONLY
    target: Annotated[
        Path | None, Option(help="Its translation, line by line; none for a decoder or an encoder alone.")
    ] = None
    generate: Annotated[
        bool, Option("--generate", help="The model writes the target itself, the likeliest piece first.")
    ] = False
    generation: Generation = None
    traces: Annotated[
        Path | None,
        Option(help="Folder of safetensors that other code saved, instead of a model and a text."),
    ] = None
    source_language: SourceLanguage = None
    target_language: TargetLanguage = None
    prefix: Prefix = ""
    target_tokenizer: TargetTokenizer = None
    references: Annotated[
        tuple | None,
        listed(help="Further translations for BLEU, line by line: files, with commas.", show_default="none"),
    ] = None
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
    batch_size: BatchSize = 32
    longest: Longest = 128
    method: Annotated[
        str,
        Option(help="least_squares: position, word and constant fitted together; means: as in the papers."),
    ] = "least_squares"
    interventions: Annotated[
        bool,
        Option("--interventions", help="See how far attention moves when parts of states are exchanged."),
    ] = False
    every: Annotated[int, Option(min=1, help="Hold out and judge one batch in so many.")] = 5
    probed: Annotated[int, Option(min=0, help="Batches of which the lexical probe is taken; it is slow.")] = 4
    sentences: Annotated[int, Option(min=0, max=12, help="Judged pairs on the page.")] = 12
    sentence: Annotated[
        list[str] | None,
        Option(
            help="A source sentence of your own, first on the page, with the terms of every head in "
            "sentences.csv; again for another.",
            show_default="none",
        ),
    ] = None
    translation: Annotated[
        list[str] | None,
        Option(help="Its translation, again for each; by default the model writes it.", show_default="none"),
    ] = None
    tables: Annotated[
        tuple,
        listed(
            help="Forms of the tables: csv, parquet (needs pyarrow); sentences adds a table of the pairs on "
            "the page, with attention and terms of every head."
        ),
    ] = ("csv",)
    words: Annotated[
        bool,
        Option("--words", help="Join pieces to words in the pairs on the page; all numbers stay by piece."),
    ] = False
    device: Device = "cpu"
    threads: Annotated[
        int | None, Option(min=1, help="Number of CPU threads.", show_default="the fastest, measured")
    ] = None
    shards: Annotated[int, Option(min=1, help="Number of shards that the corpus is split into.")] = 1
    shard: Annotated[int | None, Option(min=0, help="The shard to process, from 0.", show_default="all")] = (
        None
    )
    stage: Annotated[
        str, Option(help="Stage to run: fit, judge or report; all runs as many as can be run.")
    ] = "all"

    def __post_init__(self) -> None:
        self._read_lists()
        self._read_sentences()
        for name in _PATHS:
            path = getattr(self, name)
            if path is not None:
                object.__setattr__(self, name, Path(path))
        self._check_names()
        self._check_what_is_analysed()
        try:
            str(self.out).encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadInput(f"--out {str(self.out)!a} is not UTF-8: give the folder another name") from error
        if self.shards > 1 and self.shard is None and self.stage in ("fit", "judge"):
            raise BadInput(
                f"--stage {self.stage} is done shard by shard: give --shard 0 to {self.shards - 1}"
            )

    def _read_lists(self) -> None:
        """Parse kinds, layers and heads, which are texts on the command line."""
        from attnlib.arrays import as_tuple

        readers: dict[str, Callable[[str], tuple]] = {
            "kinds": words,
            "layers": numbers,
            "heads": numbers,
            "references": words,
            "tables": words,
        }
        for name, read in readers.items():
            value = getattr(self, name)
            values = read(value) if isinstance(value, str) else as_tuple(value)
            object.__setattr__(self, name, values)

    def _read_sentences(self) -> None:
        """Make tuples of the sentences of one's own; of a call in Python there may be one, a text."""
        for name in OWN_OPTIONS:
            value = getattr(self, name)
            if isinstance(value, str):
                value = (value,)
            object.__setattr__(self, name, tuple(value) if value else None)
        if self.sentence and self.words:
            raise BadInput("--sentence has terms by piece, and --words joins pieces: leave one of them out")
        if self.translation and not self.sentence:
            raise BadInput("--translation belongs to a sentence: give --sentence as well")
        if self.sentence and self.translation and len(self.sentence) != len(self.translation):
            raise BadInput(
                "--sentence and --translation differ in number "
                f"({len(self.sentence)} and {len(self.translation)}); give one translation for each sentence"
            )

    def _check_names(self) -> None:
        from attnlib.decomposition.components import Method
        from attnlib.models.transformer import AttentionKind

        check_known("method", self.method, get_args(Method))
        check_known("stage", self.stage, get_args(Stage))
        for form in self.tables:
            check_known("form of tables", form, ("csv", "parquet", "sentences"))
        if "parquet" in self.tables:
            from attnlib.optional import library

            library("pyarrow")  # missing, it is said before any work
        for kind in self.kinds:
            check_known("kind of attention", kind, get_args(AttentionKind))

    def _check_what_is_analysed(self) -> None:
        """Raise BadInput unless the options name a model and a text, or traces without options of a model."""
        if self.generation is not None and not self.generate:
            raise BadInput("--generation says how the model writes the target: give --generate as well")
        if self.references and self.target is None:
            raise BadInput("--references are further translations: give the first as --target")
        if self.traces is None:
            if self.model is None or self.source is None:
                raise BadInput(_WHAT_TO_GIVE)
            return
        names_a_text = any(value is not None for value in (self.model, self.source, self.target))
        if self.generate or names_a_text:
            raise BadInput(_WHAT_TO_GIVE)
        if self.words:
            raise BadInput("--words joins the pieces of a tokenizer, and --traces have none: leave it out")
        defaults = {field.name: field.default for field in fields(self)}
        changed = [name for name in MODEL_OPTIONS if getattr(self, name) != defaults[name]]
        if changed:
            flags = ", ".join(flag_of(name) for name in changed)
            raise BadInput(f"{flags} cannot be combined with --traces, which are analysed as they are")

    def settings(self, *names: str) -> dict[str, Any]:
        """Return the values of the named options, by name."""
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class AlignOptions:
    """The texts to align, the model that reads them, and the settings of its links.

    Raises:
        BadInput: options that do not go together, or a value that is none of an option's.
    """

    out: Annotated[
        Path, Option(help="File of links, a line for each pair in Pharaoh's format, such as pairs.talp.")
    ]
    model: Annotated[str, Option(help="Folder of a Hugging Face encoder–decoder, or its name.")]
    source: Annotated[Path, Option(help="Text, a sentence a line.")]
    target: Annotated[Path | None, Option(help="Its translation, line by line, which the model reads.")] = (
        None
    )
    generate: Annotated[
        bool, Option("--generate", help="The model writes the target itself, into OUT.target.txt.")
    ] = False
    generation: Generation = None
    layer: Annotated[
        str | None, Option(help="Number of a layer, or mean, over all heads.", show_default="the best")
    ] = None
    head: Annotated[
        str | None, Option(help="Number of a head, or mean, over those of a layer.", show_default="the best")
    ] = None
    shift: Annotated[
        str, Option(help="The step of a target word: write, which predicts it, or read, the next one.")
    ] = "write"
    gold: Annotated[
        Path | None,
        Option(help="Gold links (Pharaoh, NAACL or JSON lines): error rates by head, into OUT.scores.csv."),
    ] = None
    gold_first: Annotated[
        int | None,
        Option(min=0, max=1, help="Number of the first word in gold links.", show_default="by the file"),
    ] = None
    reverse: Annotated[
        str | None, Option(help="Model of the other direction; links of both are symmetrised.")
    ] = None
    reverse_prefix: Annotated[str, Option(help="Put before every source of the other direction.")] = ""
    symmetrise: Annotated[
        str, Option(help="intersection, union, grow-diag, grow-diag-final or grow-diag-final-and.")
    ] = _SYMMETRISE
    source_language: SourceLanguage = None
    target_language: TargetLanguage = None
    prefix: Prefix = ""
    target_tokenizer: TargetTokenizer = None
    batch_size: BatchSize = 32
    longest: Longest = 128
    device: Device = "cpu"
    threads: Annotated[
        int | None, Option(min=1, help="Number of CPU threads.", show_default="as torch chooses")
    ] = None

    def __post_init__(self) -> None:
        for name in ("layer", "head"):
            object.__setattr__(self, name, _number_or_mean(name, getattr(self, name)))
        if (self.target is None) != self.generate:
            raise BadInput("give --target, or --generate for the model to write it, and not both")
        if self.generation is not None and not self.generate:
            raise BadInput("--generation says how the model writes the target: give --generate as well")
        if self.reverse is None and self.reverse_prefix:
            raise BadInput("--reverse-prefix is of a model of the other direction: give --reverse as well")
        if self.reverse is None and self.symmetrise != _SYMMETRISE:
            raise BadInput("--symmetrise joins the links of two directions: give --reverse as well")
        self._check_out()

    def files_written(self) -> dict[str, Path]:
        """Return the files that the command may write, by what they hold."""
        return {
            "links": self.out,
            "scores": self.out.with_suffix(".scores.csv"),
            "target": self.out.with_suffix(".target.txt"),
        }

    def _check_out(self) -> None:
        """Raise BadInput if a file would be written over one that is read, or over a folder."""
        if self.out.is_dir():
            raise BadInput(f"--out {self.out} is a folder; give a file, such as {self.out / 'pairs.talp'}")
        read = {"--source": self.source, "--target": self.target, "--gold": self.gold}
        for holds, path in self.files_written().items():
            for flag, text in read.items():
                if text is not None and _is_one_file(path, text):
                    raise BadInput(
                        f"{path}, which {holds} are written to, is the file of {flag}: give another --out"
                    )

    def settings(self, *names: str) -> dict[str, Any]:
        """Return the values of some options, by name."""
        return {name: getattr(self, name) for name in names}


def _is_one_file(first: Path, second: Path) -> bool:
    """Return True for one file, however it is named; ``FILE#PART`` is a part of FILE."""
    from attnlib.text_files import Location

    try:
        return first.samefile(Location.of(second).path)
    except OSError:  # one of them does not exist
        return False


def _number_or_mean(name: str, value: str | int | None) -> str | int | None:
    """Return the number of a layer or a head, which is a text on the command line."""
    if value is None or value == "mean" or isinstance(value, int):
        return value
    if not value.isdecimal():
        raise BadInput(f"{flag_of(name)} is {value!r}; expected a number from 0, or mean")
    return int(value)


_WHAT_TO_GIVE = "give --model, --source and --target, or --generate for it; or --traces alone"


def flag_of(name: str) -> str:
    """Return the name of an option on the command line.

    Example:
        >>> flag_of("batch_size")
        '--batch-size'
    """
    return f"--{name.replace('_', '-')}"


def arguments(text: str | None) -> dict[str, Any] | str | None:
    """Parse arguments of the command line, each a name with a value of JSON; a word alone stays a word.

    Raises:
        BadInput: the text is not such a list.

    Example:
        >>> arguments("num_beams=4,do_sample=true"), arguments("config")
        ({'num_beams': 4, 'do_sample': True}, 'config')
    """
    import json

    if text is None or "=" not in text:
        return text
    parsed = {}
    for pair in text.split(","):
        name, _, value = pair.strip().partition("=")
        try:
            parsed[name] = json.loads(value)
        except ValueError as error:
            raise BadInput(
                f"{pair!r} is not a name with a number, true or false; write it as in num_beams=4"
            ) from error
    return parsed


def words(text: str) -> tuple[str, ...]:
    """Parse a list of words of the command line.

    Example:
        >>> words("cross, encoder_self")
        ('cross', 'encoder_self')
    """
    return tuple(word.strip() for word in text.split(","))


def numbers(text: str) -> tuple[int, ...]:
    """Parse a list of numbers and ranges of the command line.

    Raises:
        BadInput: the text is not such a list.

    Example:
        >>> numbers("0,4-6")
        (0, 4, 5, 6)
    """
    values: list[int] = []
    for word in text.split(","):
        first, dash, last = word.strip().partition("-")
        if not dash:
            last = first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise BadInput(f"{text!r} is not a list of numbers; write it as in 0,4-6")
        values += range(int(first), int(last) + 1)
    return tuple(dict.fromkeys(values))
