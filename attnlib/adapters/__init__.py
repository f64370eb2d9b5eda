"""Trace third-party models: from saved tensors, from Hugging Face, or by the names of modules."""

from attnlib.adapters.hugging_face import HuggingFace, adapter_of, lexical_probe
from attnlib.adapters.library_models import encoder_decoder_pass, transformer_pass
from attnlib.adapters.modules import Hooked, Modules
from attnlib.adapters.single_stack import SingleStack
from attnlib.adapters.tensors import pass_of_tensors, saved_passes
from attnlib.adapters.token_batch import FrameBatch, SequenceBatch, TokenBatch, sequence_batches, text_batches
from attnlib.deprecated import Attended, ModelPass
from attnlib.linear_map import LinearMap, Rotary

__all__ = [
    "Attended",
    "FrameBatch",
    "Hooked",
    "HuggingFace",
    "LinearMap",
    "ModelPass",
    "Modules",
    "Rotary",
    "SequenceBatch",
    "SingleStack",
    "TokenBatch",
    "adapter_of",
    "encoder_decoder_pass",
    "lexical_probe",
    "pass_of_tensors",
    "saved_passes",
    "sequence_batches",
    "text_batches",
    "transformer_pass",
]
