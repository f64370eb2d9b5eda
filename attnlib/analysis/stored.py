"""Sums of both passes in files: with checksums, so that parts of a corpus can be added up elsewhere."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors.torch import load_file, save
from torch import Tensor

from attnlib.analysis.fit import AverageAttention, Fit
from attnlib.analysis.judge import HeadSums, Judgement, Seen
from attnlib.analysis.stream import Losses
from attnlib.decomposition.growing import GrowingComponents
from attnlib.errors import BadInput, CorruptFile
from attnlib.files import atomic_path, write_json_atomic

FORMAT = "attnlib.analysis/2"
INDEX = "index.json"


def save_fit(fit: Fit, folder: str | Path, told: dict) -> None:
    """Write a fit as a folder, which appears whole or not at all.

    Args:
        told: what the index says beside: which part of which corpus.
    """
    with _new_folder(folder) as new:
        sites = {f"components-{n}.safetensors": site for n, site in enumerate(sorted(fit.components))}
        for name, site in sites.items():
            fit.components[site].save(new / name)
        averages = {
            f"{attention}/{head}/{name}": tensor
            for (attention, head), own in fit.averages.items()
            for name, tensor in own.tensors().items()
        }
        _write_tensors(new / "averages.safetensors", averages)
        heads = None if fit.heads is None else list(fit.heads)
        _write_index(new, fit, [*sites, "averages.safetensors"], told, sites=sites, heads=heads)


def load_fit(folder: str | Path) -> tuple[Fit, dict]:
    """A fit and what its index says beside.

    Raises:
        BadInput: no fit there. CorruptFile: a file that is not what the index says.
    """
    folder, index = Path(folder), _checked(folder)
    fit = _with_counts(Fit(index["heads"]), index)
    fit.components = {site: GrowingComponents.load(folder / name) for name, site in index["sites"].items()}
    grouped: dict[tuple[str, int], dict[str, Tensor]] = {}
    for key, tensor in load_file(folder / "averages.safetensors").items():
        attention, head, name = key.split("/")
        grouped.setdefault((attention, int(head)), {})[name] = tensor
    fit.averages = {key: AverageAttention.of_tensors(own) for key, own in grouped.items()}
    return fit, index["told"]


def save_judgement(judgement: Judgement, folder: str | Path, told: dict) -> None:
    """Write a judgement as a folder, as :func:`save_fit`; the fit that it is by stays out."""
    with _new_folder(folder) as new:
        heads = {f"{attention}/{head}": own for (attention, head), own in judgement.heads.items()}
        tensors = {f"{at}/{name}": each for at, own in heads.items() for name, each in own.terms.sums.items()}
        _write_tensors(new / "heads.safetensors", tensors)
        _write_index(
            new,
            judgement,
            ["heads.safetensors"],
            told,
            terms={at: list(own.terms.terms) for at, own in heads.items()},
            totals={at: own.totals for at, own in heads.items()},
            seen={site: vars(own) for site, own in judgement.seen.items()},
        )


def load_judgement(folder: str | Path, fit: Fit) -> tuple[Judgement, dict]:
    """A judgement by a fit, and what its index says beside; errors as :func:`load_fit`."""
    index = _checked(folder)
    tensors = load_file(Path(folder) / "heads.safetensors")
    judgement = _with_counts(Judgement(fit), index)
    judgement.seen = {site: Seen(**own) for site, own in index["seen"].items()}
    for at, terms in index["terms"].items():
        attention, head = at.split("/")
        own = judgement.heads[attention, int(head)] = HeadSums(tuple(terms))
        own.terms.sums = {name: tensors[f"{at}/{name}"] for name in own.terms.sums}
        own.totals = index["totals"][at]
    return judgement, index["told"]


def is_stored(folder: str | Path) -> bool:
    """Whether a folder holds a part; one that was being replaced when its process died is put back."""
    folder = Path(folder)
    gone = not folder.exists() or not any(folder.iterdir())  # a workflow makes folders beforehand
    if gone and _before(folder).exists():
        _before(folder).replace(folder)
    return (folder / INDEX).is_file()


def read_index(folder: str | Path) -> dict:
    """What the index of a part says beside, without reading the part; errors as :func:`load_fit`."""
    return _index(Path(folder))["told"]


@contextmanager
def _new_folder(folder: str | Path) -> Iterator[Path]:
    """A folder to write into that takes the place of ``folder`` when the block ends well.

    Raises:
        BadInput: it cannot be made.
    """
    folder = Path(folder)
    new, before = folder.with_name(f".{folder.name}.new"), _before(folder)
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir(parents=True)
    except OSError as error:
        raise BadInput(
            f"cannot write {folder}: {error.strerror}; choose a folder you may write to"
        ) from error
    yield new
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.replace(before)
    new.replace(folder)
    shutil.rmtree(before, ignore_errors=True)


def _before(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.before")


def _checked(folder: str | Path) -> dict:
    """The index of a part, once all of its files are what it says."""
    folder = Path(folder)
    index = _index(folder)
    for name, digest in index["files"].items():
        path = folder / name
        if not path.is_file():
            raise CorruptFile(f"{path} is not there, though {folder / INDEX} lists it: make this part again")
        if _digest(path) != digest:
            raise CorruptFile(f"{path} is not what {folder / INDEX} says (sha256): make this part again")
    return index


def _index(folder: Path) -> dict:
    path = folder / INDEX
    if not is_stored(folder):
        raise BadInput(f"{folder} holds no part of an analysis: {INDEX} is not there")
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path} cannot be read ({error}): make this part again") from error
    if not isinstance(index, dict) or index.pop("sha256", None) != _digest_of(index):
        raise CorruptFile(f"{path} is not what was written there (sha256): make this part again")
    if index["format"] != FORMAT:
        raise CorruptFile(f"{path} is of format {index['format']}, not {FORMAT}: make this part again")
    return index


def _write_index(folder: Path, sums: Fit | Judgement, files: list[str], told: dict, **content) -> None:
    content |= {"samples": sums.samples, "losses": vars(sums.losses), "unchecked": sorted(sums.unchecked)}
    content |= {"files": {name: _digest(folder / name) for name in files}, "told": told, "format": FORMAT}
    write_json_atomic(folder / INDEX, content | {"sha256": _digest_of(content)})


def _with_counts(sums: Fit | Judgement, index: dict) -> Fit | Judgement:
    sums.samples, sums.losses = index["samples"], Losses(**index["losses"])
    sums.unchecked = frozenset(index["unchecked"])
    return sums


def _digest_of(content: dict) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    with atomic_path(path) as temporary:
        temporary.write_bytes(save({name: tensor.contiguous() for name, tensor in tensors.items()}))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
