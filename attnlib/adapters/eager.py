"""Make a model of the transformers library show its attention while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def eager(model: Any) -> Iterator[None]:
    """Let a model compute its attention step by step within a block, where hooks can see it.

    Args:
        model: of transformers; its attention implementation is as before afterwards.

    Yields:
        Nothing.

    Example:
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> config = GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=2, attn_implementation="sdpa")
        >>> model = GPT2LMHeadModel(config)
        >>> with eager(model):
        ...     model.config._attn_implementation
        'eager'
        >>> model.config._attn_implementation
        'sdpa'
    """
    modules = [module for module in model.modules() if hasattr(module, "config")]
    configs = {id(module.config): module.config for module in modules}  # the model's own first
    before = {at: getattr(config, "_attn_implementation", None) for at, config in configs.items()}
    is_eager = set(before.values()) == {"eager"}
    try:
        if not is_eager:
            model.set_attn_implementation("eager")
        yield
    finally:
        if not is_eager:
            for at, config in configs.items():
                config._attn_implementation = before[at]
