"""The committed results of the paper profile: which there are, and whether each file is as it was written.

``results/paper/SHA256SUMS`` has the checksum of every file of the results and the archive; in that folder
``sha256sum --check SHA256SUMS`` compares them, too. What writes a committed result writes it anew.

``python -m companion.results.committed`` moves what was measured at the paper profile into the archive, as
``attnlib run --profile paper`` does at its end.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from attnlib.files import write_text_atomic
from companion.paths import ARCHIVE, MEASUREMENTS, PAPER, RESULTS, ROOT
from companion.results import registry

NAME = "SHA256SUMS"


def committed() -> list[str]:
    """Experiments whose paper-sized result is committed."""
    return [name for name in registry.names() if (PAPER / f"{name}.json").is_file()]


def keep(root: Path = ROOT) -> int:
    """Move new measurements of the paper profile into the archive; how many runs they are of."""
    from companion.runs.archive import Archive

    folder = root / RESULTS["paper"]
    packed = Archive(folder / ARCHIVE.name, root / MEASUREMENTS.relative_to(ROOT)).pack()
    if folder.is_dir():
        write_checksums(folder)
    return packed


def write_checksums(folder: Path = PAPER) -> None:
    """Write the checksums of all files below a folder of results, sorted by name."""
    lines = [f"{checksum}  {name}\n" for name, checksum in sorted(_checksums(folder).items())]
    write_text_atomic(folder / NAME, "".join(lines))


def altered(folder: Path = PAPER) -> Iterator[str]:
    """A line for each file of a folder of results that is gone, new, or not as it was written."""
    noted = folder / NAME
    if not noted.is_file():
        yield f"{noted} is missing: `python -m companion.results.recompute` writes it"
        return
    lines = noted.read_text(encoding="utf-8", errors="replace").splitlines()  # an altered name fits no file
    expected = {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}
    today = _checksums(folder)
    for name in sorted(expected.keys() | today.keys()):
        if today.get(name) != expected.get(name):
            happened = _what_happened(name, expected, today)
            way_out = (
                "git restores it, or `python -m companion.results.recompute` computes it from the archive"
            )
            yield f"results/paper/{name} {happened}: {way_out}"


def _what_happened(name: str, expected: dict[str, str], today: dict[str, str]) -> str:
    if name not in today:
        return "is missing"
    if name not in expected:
        return f"is not in {NAME}"
    return "is not as it was written"


def _checksums(folder: Path) -> dict[str, str]:
    checksums = {}
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and path.name != NAME and not hidden:
            content = path.read_bytes()
            checksums[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
    return checksums


if __name__ == "__main__":
    print(f"{keep()} runs joined the archive")
