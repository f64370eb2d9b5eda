"""Kernels that talk over sockets in a folder of their process: two started at once never take the same port.

``pytest -p companion.book.kernels`` does so for the kernels of nbval.
"""

import os
from functools import cache, partial
from tempfile import TemporaryDirectory

from traitlets.config import Config


@cache
def _folder() -> TemporaryDirectory:
    """Removed with the process. The path of a socket has at most 108 characters, so not below ``TMPDIR``."""
    return TemporaryDirectory(prefix="attnlib-", dir="/tmp" if os.access("/tmp", os.W_OK) else None)


def local_sockets() -> Config:
    """Settings of a kernel manager."""
    return Config({"KernelManager": {"transport": "ipc", "ip": f"{_folder().name}/kernel"}})


def pytest_configure() -> None:
    import nbval.kernel

    nbval.kernel.KernelManager = partial(nbval.kernel.KernelManager, config=local_sockets())
