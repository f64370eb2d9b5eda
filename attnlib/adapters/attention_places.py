"""Where the attentions of a Hugging Face encoder–decoder stand, and models that have none of a known form."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from torch import nn

from attnlib.errors import BadInput
from attnlib.models.transformer import AttentionKind

_NAMES = {  # what modules call the attentions of the families
    "EncDecAttention": "cross",
    "encoder_attn": "cross",
    "SelfAttention": "self",
    "self_attn": "self",
}


@dataclass(frozen=True)
class _Family:
    """How a family of attention modules names its parts."""

    query: str
    key: str
    heads: str


_FAMILIES = (
    _Family("q", "k", "n_heads"),  # T5
    _Family("q_proj", "k_proj", "num_heads"),  # BART, mBART, Marian, M2M100, Pegasus
)


@dataclass(frozen=True)
class Place:
    """An attention module in the model; ``path`` is its name there."""

    kind: AttentionKind
    layer: int
    path: str
    module: nn.Module
    family: _Family | None

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.layer}"

    @property
    def query(self) -> nn.Linear:
        return getattr(self.module, self.family.query)

    @property
    def key(self) -> nn.Linear:
        return getattr(self.module, self.family.key)

    @property
    def heads(self) -> int:
        return getattr(self.module, self.family.heads)

    def require_projections(self) -> None:
        """Its form is known, and its projections are plain.

        Raises:
            BadInput: one is wrapped, as LoRA does, or quantised: its weight is not what it computes with.
        """
        if self.family is None:
            raise BadInput(
                f"{self.path} is {type(self.module).__name__}, which has no query and key projections of a "
                "known form; take off what wraps it, or leave its kind out"
            )
        for name in (self.family.query, self.family.key):
            own = getattr(self.module, name)
            if not isinstance(own, nn.Linear) or type(own).forward is not nn.Linear.forward:
                raise BadInput(
                    f"{self.path}.{name} is {type(own).__name__}; expected nn.Linear. Take off what wraps it "
                    "(of peft: model.merge_and_unload(); of a quantised model: load it in full), or name the "
                    "nn.Linear inside, see attnlib.adapters.Modules"
                )


def attention_places(model: nn.Module, kinds: Collection[AttentionKind]) -> list[Place]:
    """Every attention, in the order of the model; those of a form that is not known without family.

    Raises:
        BadInput: no cross-attention of a known form, or none of one of ``kinds``.
    """
    found = []
    for path, module in model.named_modules():
        kind = _NAMES.get(path.rpartition(".")[2])
        numbers = re.findall(r"\.(?:layers|block)\.(\d+)\.", path)
        if kind is None or not numbers:
            continue
        if kind == "self":
            kind = "encoder_self" if "encoder" in path.split(".") else "decoder_self"
        family = next((own for own in _FAMILIES if _is_of(module, own)), None)
        found.append(Place(kind, int(numbers[0]), path, module, family))
    known = {place.kind for place in found if place.family is not None}
    if "cross" not in known:
        raise BadInput(
            f"{type(model).__name__} has no cross-attention in the form of T5, BART, mBART or Marian: name "
            "its modules instead, see attnlib.adapters.Modules"
        )
    for kind in kinds:
        if kind not in known:
            raise BadInput(
                f"{type(model).__name__} has no {kind} attention of a known form: leave this kind out"
            )
    return [place for place in found if place.kind in known]


def _is_of(module: nn.Module, family: _Family) -> bool:
    return all(hasattr(module, name) for name in (family.query, family.key, family.heads, "scaling"))


def require_both_halves(model: nn.Module) -> None:
    """An encoder–decoder of the transformers library.

    Raises:
        BadInput: a model of another library, or one half; the message says which is missing.
    """
    config = getattr(model, "config", None)
    if config is None:
        raise BadInput(
            f"{type(model).__name__} has no config: it is no model of the transformers library. Name its "
            "modules instead, see attnlib.adapters.Modules"
        )
    parts = {part for path, _ in model.named_modules() for part in path.split(".")}
    if not (getattr(config, "is_encoder_decoder", False) and parts >= {"encoder", "decoder"}):
        half = "an encoder" if _looks_back(model, config) else "a decoder"
        raise BadInput(
            f"{type(model).__name__} lacks {half}, and so cross-attention from one to the other: expected an "
            "encoder–decoder such as T5, BART, mBART or Marian, whole (AutoModelForSeq2SeqLM)"
        )


def _looks_back(model: nn.Module, config: Any) -> bool:
    """Whether a model that is one half sees earlier words alone, as decoders do."""
    looks = (getattr(own, "is_causal", False) for own in model.modules())
    if getattr(config, "is_decoder", False) or any(looks):
        return True
    if getattr(config, "is_encoder_decoder", False):  # of a whole model, of which this is the encoder
        return False
    try:
        from transformers.models.auto import modeling_auto
    except ImportError:  # a model of another library, with a config all the same
        return False
    family = getattr(config, "model_type", None)
    return (
        family in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        and family not in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )
