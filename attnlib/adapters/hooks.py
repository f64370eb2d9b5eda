"""What modules read and return while a model runs once, without a copy, and what they are made to return."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.adapters.model_pass import ModelPass
from attnlib.errors import BadInput

Outputs = Tensor | tuple


class Hooks:
    """Hooks on some modules of a model; nothing stays on the model after the ``with`` block.

    A module that is caught runs once: of several runs none could be told from the others.
    """

    def __init__(self, model: nn.Module):
        self._model = model
        self._stack = ExitStack()
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Outputs] = {}

    def __enter__(self) -> "Hooks":
        self._stack.enter_context(evaluated(self._model))
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()

    def catch_input(self, name: str, module: nn.Module) -> None:
        """Keep the first argument of the module's call as ``inputs[name]``; BadInput when it runs again."""

        def keep(_: nn.Module, given: tuple, named: dict) -> None:
            self._require_first(name, self.inputs)
            self.inputs[name] = (*given, *named.values())[0]

        self._stack.callback(module.register_forward_pre_hook(keep, with_kwargs=True).remove)

    def catch_output(self, name: str, module: nn.Module) -> None:
        """Keep what the module returns as ``outputs[name]``; errors as :meth:`catch_input`."""
        self.replace_output(name, module, lambda output: output)

    def replace_output(self, name: str, module: nn.Module, change: Callable[[Outputs], Outputs]) -> None:
        """Let ``change(output)`` be what the module returns, and keep it; errors as :meth:`catch_input`."""

        def keep(_: nn.Module, _given: tuple, output: Outputs) -> Outputs:
            self._require_first(name, self.outputs)
            self.outputs[name] = change(output)
            return self.outputs[name]

        self._stack.callback(module.register_forward_hook(keep).remove)

    @staticmethod
    def _require_first(name: str, kept: dict) -> None:
        if name in kept:
            raise BadInput(
                f"{name} runs more than once in a pass, so that one attention cannot be told from another; "
                "give each attention modules of its own, and let the decoder read all steps at once"
            )

    def rewrite(self, module: nn.Module, change: Any) -> None:
        """Let ``change(args, kwargs)`` say what the module is called with."""
        hook = module.register_forward_pre_hook(lambda _, a, k: change(a, k), with_kwargs=True)
        self._stack.callback(hook.remove)


@contextmanager
def evaluated(model: nn.Module) -> Iterator[None]:
    """Without dropout and without gradient; the modules' modes are as before in the end."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def probe_by_position(
    one: ModelPass, logits: Callable[[int], Float[Tensor, "batch target words"]]
) -> Float[Tensor, "batch target source"]:
    """β from the logits of a model that sees one source position; zero at padding, in float32.

    Raises:
        BadInput: a right word that the model has no logit for.
    """
    right = one.target_outputs.masked_fill(~one.target_mask, 0)  # at padding any id may stand
    beta = torch.zeros(*one.target_outputs.shape, one.source_tokens.shape[1], device=one.source_tokens.device)
    for position in range(one.source_tokens.shape[1]):
        probability = logits(position).float().softmax(-1)
        if int(right.max()) >= probability.shape[-1]:
            raise BadInput(
                f"a right word has id {int(right.max())}; the model predicts {probability.shape[-1]} words, "
                "from 0: take the pass and the probe of one model"
            )
        beta[:, :, position] = probability.gather(-1, right[..., None])[..., 0]
    valid = one.target_mask[:, :, None] & one.source_mask[:, None, :]
    return beta.masked_fill(~valid, 0)
