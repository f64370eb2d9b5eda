"""attnlib: how attention forms in encoder-decoder networks.

The public names are imported on first use, so that ``import attnlib`` and ``attnlib --help`` do not wait for
torch. Machines that only train have numpy, torch, safetensors and jaxtyping alone, so this module does not
use a package for lazy imports.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from attnlib.version import __version__

if TYPE_CHECKING:  # read by editors and type checkers alone
    from attnlib.adapters import FrameBatch as FrameBatch
    from attnlib.adapters import Hooked as Hooked
    from attnlib.adapters import HuggingFace as HuggingFace
    from attnlib.adapters import Modules as Modules
    from attnlib.adapters import SequenceBatch as SequenceBatch
    from attnlib.adapters import TokenBatch as TokenBatch
    from attnlib.adapters import adapter_of as adapter_of
    from attnlib.adapters import lexical_probe as lexical_probe
    from attnlib.adapters import pass_of_tensors as pass_of_tensors
    from attnlib.adapters import sequence_batches as sequence_batches
    from attnlib.adapters import text_batches as text_batches
    from attnlib.alignment import Alignments as Alignments
    from attnlib.analysis import Analysis as Analysis
    from attnlib.analysis import HoldOut as HoldOut
    from attnlib.analysis import Shard as Shard
    from attnlib.analysis import Stream as Stream
    from attnlib.decomposition.components import Components as Components
    from attnlib.decomposition.components import Parts as Parts
    from attnlib.decomposition.shares import shares as shares
    from attnlib.decomposition.substitution import substitution as substitution
    from attnlib.decomposition.terms import alignment_terms as alignment_terms
    from attnlib.decomposition.typicality import typicality as typicality
    from attnlib.deprecated import GrowingComponents as GrowingComponents
    from attnlib.deprecated import ModelPass as ModelPass
    from attnlib.errors import AttnlibError as AttnlibError
    from attnlib.models.config import ModelConfig as ModelConfig
    from attnlib.models.encoder_decoder import EncoderDecoder as EncoderDecoder
    from attnlib.probes.agreement import agreement as agreement
    from attnlib.report import Checkpoint as Checkpoint
    from attnlib.report import Comparison as Comparison
    from attnlib.report import ParallelText as ParallelText
    from attnlib.report import align as align
    from attnlib.report import analyse as analyse
    from attnlib.report import compare as compare
    from attnlib.report import read_report as read_report
    from attnlib.report import report as report
    from attnlib.report import write_report as write_report
    from attnlib.trace import Attention as Attention
    from attnlib.trace import Trace as Trace

_PUBLIC = {  # each public name and the module that it is imported from; the same as above
    "FrameBatch": "attnlib.adapters",
    "Hooked": "attnlib.adapters",
    "HuggingFace": "attnlib.adapters",
    "Modules": "attnlib.adapters",
    "SequenceBatch": "attnlib.adapters",
    "TokenBatch": "attnlib.adapters",
    "adapter_of": "attnlib.adapters",
    "lexical_probe": "attnlib.adapters",
    "pass_of_tensors": "attnlib.adapters",
    "sequence_batches": "attnlib.adapters",
    "text_batches": "attnlib.adapters",
    "Alignments": "attnlib.alignment",
    "Analysis": "attnlib.analysis",
    "Checkpoint": "attnlib.report",
    "Comparison": "attnlib.report",
    "HoldOut": "attnlib.analysis",
    "ParallelText": "attnlib.report",
    "Shard": "attnlib.analysis",
    "Stream": "attnlib.analysis",
    "align": "attnlib.report",
    "analyse": "attnlib.report",
    "compare": "attnlib.report",
    "read_report": "attnlib.report",
    "report": "attnlib.report",
    "write_report": "attnlib.report",
    "Parts": "attnlib.decomposition.components",
    "Components": "attnlib.decomposition.components",
    "GrowingComponents": "attnlib.deprecated",
    "ModelPass": "attnlib.deprecated",
    "shares": "attnlib.decomposition.shares",
    "substitution": "attnlib.decomposition.substitution",
    "alignment_terms": "attnlib.decomposition.terms",
    "typicality": "attnlib.decomposition.typicality",
    "AttnlibError": "attnlib.errors",
    "ModelConfig": "attnlib.models.config",
    "EncoderDecoder": "attnlib.models.encoder_decoder",
    "agreement": "attnlib.probes.agreement",
    "Attention": "attnlib.trace",
    "Trace": "attnlib.trace",
}
_SUBMODULES = (
    "adapters",
    "alignment",
    "analysis",
    "arrays",
    "cli",
    "commands",
    "decomposition",
    "deprecated",
    "doctor",
    "errors",
    "files",
    "former_names",
    "linear_map",
    "models",
    "optional",
    "options",
    "probes",
    "progress",
    "report",
    "sealed",
    "softmax",
    "streaming",
    "text_files",
    "text_traces",
    "trace",
    "version",
    "zoo",
)
__all__ = ["__version__", *_PUBLIC]  # pyright: ignore[reportUnsupportedDunderAll]  # names of a dictionary


def __getattr__(name: str):
    if name in _SUBMODULES:
        return import_module(f"attnlib.{name}")
    if name not in _PUBLIC:
        names = ", ".join(sorted(__all__))
        raise AttributeError(f"module 'attnlib' has no attribute {name!r}; it has {names}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value  # found at once from now on
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
