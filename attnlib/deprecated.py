"""Names of earlier releases, which warn and name their replacements; the next release removes them."""

from typing import TYPE_CHECKING, Any

from jaxtyping import Bool, Int
from torch import Tensor

from attnlib.former_names import warn
from attnlib.trace import Attention, Trace

if TYPE_CHECKING:
    from attnlib.decomposition.components import Components, Method


def GrowingComponents(width: int, method: "Method" = "means") -> "Components":
    """Return :class:`attnlib.Components`, the replacement of this name: they grow by themselves.

    Args:
        width: of the states.
        method: of the components.

    Returns:
        empty components.
    """
    from attnlib.decomposition.components import Components

    warn("GrowingComponents is deprecated: attnlib.Components(width) grows by itself")
    return Components(width, method)


class _AcceptsTraces(type):
    """The type of a class whose instances are traces."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Trace)


class ModelPass(metaclass=_AcceptsTraces):
    """Make a validated :class:`attnlib.Trace`, the replacement of this name, from the former arguments."""

    def __new__(cls, *arguments: Any, **options: Any) -> Trace:
        """Return a validated trace; the first ten arguments may be given by position or by name."""
        warn("ModelPass is deprecated: it is attnlib.Trace, whose attended are attentions")
        names = (
            "source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask", "attended",
            "ignored_source", "ignored_target", "lexical_probe", "predicts",
        )  # fmt: skip
        values = dict(zip(names, arguments, strict=False)) | options
        values["attentions"] = tuple(values.pop("attended", ()))
        trace = Trace(**values)
        trace.check_tensors()
        return trace.padded_right()

    @classmethod
    def of_one_sequence(
        cls,
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        attended: tuple[Attention, ...],
    ) -> Trace:
        """Return :meth:`attnlib.Trace.of_one_sequence`, the replacement of this method.

        Args:
            tokens: the sequences, padded at the right.
            mask: True at valid positions.
            attended: the self-attentions that were recorded.
        """
        warn("ModelPass is deprecated: it is attnlib.Trace, with Trace.of_one_sequence")
        return Trace.of_one_sequence(tokens, mask, attended)


def Attended(*arguments: Any, **options: Any) -> Attention:
    """Return :class:`attnlib.Attention`, which takes both projections together, as ``maps``."""
    warn("Attended is deprecated: it is attnlib.Attention, with maps=(query_map, key_map)")
    names = (
        "kind", "layer", "query_inputs", "key_inputs", "query_site", "key_site", "query_map", "key_map",
        "scale", "position_bias", "query_rotation", "key_rotation", "attention", "causal", "window",
        "precision",
    )  # fmt: skip
    values = dict(zip(names, arguments, strict=False)) | options
    values["weights"] = values.pop("attention", None)
    values["maps"] = (values.pop("query_map"), values.pop("key_map"))
    return Attention(values.pop("kind"), values.pop("layer"), **values)
