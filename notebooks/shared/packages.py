"""Files of packages from PyPI that nobody imports: nothing of them is run."""

import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from attnlib.errors import CorruptFile, DataUnavailable


def read_file(name: str, checksums: Mapping[str, str], install: str) -> bytes:
    """A file of an installed package, ``package/folders/file``.

    Raises DataUnavailable: the package is not installed, ``install`` says how; CorruptFile: another sha256.
    """
    package, _, rest = name.partition("/")
    spec = find_spec(package)
    if spec is None:
        raise DataUnavailable(f"{package} is not installed: pip install --no-deps {install}")
    content = Path(spec.submodule_search_locations[0], rest).read_bytes()
    if hashlib.sha256(content).hexdigest() != checksums[name]:
        raise CorruptFile(f"{name} is not of the version that the extra 'real' names")
    return content
