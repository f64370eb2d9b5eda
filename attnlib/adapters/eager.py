"""How a model of the transformers library is made to show its attention while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def eager(model: Any) -> Iterator[None]:
    """Let a model compute its attention step by step, where it can be seen; afterwards as it did before."""
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
