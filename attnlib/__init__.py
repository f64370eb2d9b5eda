"""attnlib: how attention forms in encoder-decoder networks.

The public names are imported on first use, so that ``import attnlib`` and ``attnlib --help`` do not wait for
torch.
"""

from importlib import import_module

__version__ = "0.1.0"

_NAMES = {
    "adapters": "Hooked HuggingFace ModelPass Modules TokenBatch lexical_probe pass_of_tensors text_batches",
    "analysis": "Analysis Checkpoint ParallelText Part Stream analyse report write_report",
    "decomposition.components": "Components Parts",
    "decomposition.growing": "GrowingComponents",
    "decomposition.terms": "alignment_terms",
    "errors": "AttnlibError",
    "models.config": "ModelConfig",
    "models.encoder_decoder": "EncoderDecoder",
    "models.trace": "Trace",
}
_PUBLIC = {name: f"attnlib.{module}" for module, names in _NAMES.items() for name in names.split()}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str):
    if name not in _PUBLIC:
        known = ", ".join(sorted(__all__))
        raise AttributeError(f"module 'attnlib' has no attribute {name!r}; it has {known}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
