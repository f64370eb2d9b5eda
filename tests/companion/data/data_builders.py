"""What the tests of data share, and how all tests of this room put files into a folder and read their own."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from attnlib.errors import DataUnavailable


def available(load, *arguments, **options):
    """What is loaded; the test is skipped where the files are not on this machine."""
    try:
        return load(*arguments, **options)
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")


def pairs(task, part):
    """Words of both sides of every sample of ``"train"`` or ``"held_out"``."""
    corpus, source, target = getattr(task, part), task.source_vocabulary, task.target_vocabulary
    sides = ((source.decode(corpus.source(i)), target.decode(corpus.target(i))) for i in range(len(corpus)))
    return [tuple(map(tuple, both)) for both in sides]


def sources(task, part):
    return [source for source, _ in pairs(task, part)]


def put(folder, files, encoding="utf-8"):
    """Files of text or bytes, and archives of such by name."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            with TemporaryDirectory() as members:
                put(Path(members), content, encoding)
                kind = "gztar" if name.endswith(".tar.gz") else "zip"
                Path(shutil.make_archive(path, kind, members)).replace(path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
