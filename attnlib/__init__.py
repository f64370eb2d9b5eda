"""attnlib: how attention forms in encoder-decoder networks.

The public names are imported on first use, so that ``import attnlib`` and ``attnlib --help`` do not wait for
torch.
"""

from importlib import import_module

__version__ = "0.1.0"

_PUBLIC = {
    "Analysis": "attnlib.analysis",
    "AttnlibError": "attnlib.errors",
    "Components": "attnlib.decomposition.components",
    "Checkpoint": "attnlib.analysis",
    "EncoderDecoder": "attnlib.models.encoder_decoder",
    "GrowingComponents": "attnlib.decomposition.growing",
    "Hooked": "attnlib.adapters",
    "HuggingFace": "attnlib.adapters",
    "ModelConfig": "attnlib.models.config",
    "ModelPass": "attnlib.adapters",
    "Modules": "attnlib.adapters",
    "ParallelText": "attnlib.analysis",
    "Part": "attnlib.analysis",
    "Parts": "attnlib.decomposition.components",
    "Stream": "attnlib.analysis",
    "TokenBatch": "attnlib.adapters",
    "Trace": "attnlib.models.trace",
    "alignment_terms": "attnlib.decomposition.terms",
    "analyse": "attnlib.analysis",
    "lexical_probe": "attnlib.adapters",
    "pass_of_tensors": "attnlib.adapters",
    "report": "attnlib.analysis",
    "text_batches": "attnlib.adapters",
    "write_report": "attnlib.analysis",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str):
    if name not in _PUBLIC:
        known = ", ".join(sorted(__all__))
        raise AttributeError(f"module 'attnlib' has no attribute {name!r}; it has {known}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
