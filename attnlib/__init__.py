"""attnlib: how attention forms in encoder-decoder networks.

The public names are imported on first use, so that ``import attnlib`` and ``attnlib --help`` do not wait for
torch.
"""

from importlib import import_module

__version__ = "0.1.0"

_PUBLIC = {
    "AttnlibError": "attnlib.errors",
    "Components": "attnlib.decomposition.components",
    "Parts": "attnlib.decomposition.components",
    "alignment_terms": "attnlib.decomposition.terms",
    "EncoderDecoder": "attnlib.models.encoder_decoder",
    "ModelConfig": "attnlib.models.config",
    "Trace": "attnlib.models.trace",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str):
    if name not in _PUBLIC:
        known = ", ".join(sorted(__all__))
        raise AttributeError(f"module 'attnlib' has no attribute {name!r}; it has {known}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
