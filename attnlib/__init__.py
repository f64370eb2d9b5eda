"""attnlib: how attention forms in encoder-decoder networks.

The public names are imported on first use, so that ``import attnlib`` and ``attnlib --help`` do not wait for
torch.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:  # read by editors and type checkers, and below
    from attnlib.adapters import FrameBatch as FrameBatch
    from attnlib.adapters import Hooked as Hooked
    from attnlib.adapters import HuggingFace as HuggingFace
    from attnlib.adapters import ModelPass as ModelPass
    from attnlib.adapters import Modules as Modules
    from attnlib.adapters import TokenBatch as TokenBatch
    from attnlib.adapters import lexical_probe as lexical_probe
    from attnlib.adapters import pass_of_tensors as pass_of_tensors
    from attnlib.adapters import text_batches as text_batches
    from attnlib.analysis import Analysis as Analysis
    from attnlib.analysis import Checkpoint as Checkpoint
    from attnlib.analysis import Comparison as Comparison
    from attnlib.analysis import ParallelText as ParallelText
    from attnlib.analysis import Shard as Shard
    from attnlib.analysis import Stream as Stream
    from attnlib.analysis.analyse import analyse as analyse
    from attnlib.analysis.compare import compare as compare
    from attnlib.analysis.report import read_report as read_report
    from attnlib.analysis.report import report as report
    from attnlib.analysis.report import write_report as write_report
    from attnlib.decomposition.components import Parts as Parts
    from attnlib.decomposition.fast import Components as Components
    from attnlib.decomposition.growing import GrowingComponents as GrowingComponents
    from attnlib.decomposition.shares import shares as shares
    from attnlib.decomposition.substitution import substitution as substitution
    from attnlib.decomposition.terms import alignment_terms as alignment_terms
    from attnlib.decomposition.typicality import typicality as typicality
    from attnlib.errors import AttnlibError as AttnlibError
    from attnlib.models.config import ModelConfig as ModelConfig
    from attnlib.models.encoder_decoder import EncoderDecoder as EncoderDecoder
    from attnlib.models.trace import Trace as Trace
    from attnlib.probes.agreement import agreement as agreement

_BLOCK = next(own for own in ast.parse(Path(__file__).read_bytes()).body if isinstance(own, ast.If))
_PUBLIC = {alias.asname: each.module for each in _BLOCK.body for alias in each.names}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str):
    if name == "zoo":
        return import_module("attnlib.zoo")
    if name not in _PUBLIC:
        known = ", ".join(sorted(__all__))
        raise AttributeError(f"module 'attnlib' has no attribute {name!r}; it has {known}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "zoo"])
