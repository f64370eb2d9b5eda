"""What modules read and return while a model runs once, without a copy."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

Outputs = Tensor | tuple


class Hooks:
    """Hooks on some modules of a model; nothing stays on the model after the ``with`` block.

    >>> layer = nn.Linear(2, 3)
    >>> with Hooks(layer) as hooks:
    ...     hooks.catch_input("in", layer)
    ...     _ = layer(torch.ones(1, 2))
    >>> hooks.inputs["in"].tolist()
    [[1.0, 1.0]]
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
        """Keep the first argument of the module's call as ``inputs[name]``."""

        def keep(_: nn.Module, given: tuple, named: dict) -> None:
            self.inputs[name] = (*given, *named.values())[0]

        self._stack.callback(module.register_forward_pre_hook(keep, with_kwargs=True).remove)

    def catch_output(self, name: str, module: nn.Module) -> None:
        """Keep what the module returns as ``outputs[name]``."""

        def keep(_: nn.Module, _given: tuple, output: Outputs) -> None:
            self.outputs[name] = output

        self._stack.callback(module.register_forward_hook(keep).remove)

    def replace_output(self, module: nn.Module, change: Callable[[Outputs], Outputs]) -> None:
        """Let ``change(output)`` be what the module returns."""
        hook = module.register_forward_hook(lambda _, _given, output: change(output))
        self._stack.callback(hook.remove)

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
