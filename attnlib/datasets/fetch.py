"""Download data sets into the cache. The one module here that needs more than the standard library: pooch."""

from pathlib import Path

from attnlib.datasets.base import Dataset, File
from attnlib.datasets.locate import FileStatus, cache_folder, check, is_added_gzip, verify
from attnlib.errors import DataUnavailable
from attnlib.files import atomic_path


def fetch(dataset: Dataset, *, progress: bool = False) -> list[FileStatus]:
    """Download what is missing or corrupt in the cache and mirror, and say how every file stands then.

    A download goes to a temporary file that replaces the old one only after its checksum was found right: a
    broken or truncated one changes nothing. Files that cannot be downloaded and verified one by one are left
    out and stay "missing", with the page to visit in their detail.

    Args:
        dataset: what to fetch.
        progress: show a bar for each download.

    Raises:
        DataUnavailable: no file of the data set can be fetched, or the server does not give one.
        CorruptFile: the server gives another content than expected; the message names both checksums.
        BadInput: the cache folder cannot be written.
    """
    if not any(file.fetchable for file in dataset.files):
        raise DataUnavailable(
            f"{dataset.name} cannot be fetched file by file: {dataset.note} Visit {dataset.home} and put "
            f"the files into {cache_folder() / dataset.folder}, or set ATTNLIB_DATA to a folder that holds "
            f"{dataset.folder}/"
        )
    for status in check(dataset):
        if status.state in ("missing", "corrupt") and status.file.fetchable:
            _download(dataset, status.file, progress)
    return check(dataset)


def _download(dataset: Dataset, file: File, progress: bool) -> None:
    import pooch

    name = file.name
    if is_added_gzip(file, file.url):
        name += ".gz"
    destination = cache_folder() / dataset.folder / name
    download = pooch.HTTPDownloader(progressbar=progress)
    with atomic_path(destination) as temporary:
        try:
            download(file.url, str(temporary), None)
        except OSError as error:
            # What the requests library raises, broken connections included, is an OSError.
            raise DataUnavailable(
                f"cannot download {file.url}: {error}; try again, or set ATTNLIB_DATA to a folder that holds "
                f"{dataset.folder}/{file.name}"
            ) from error
        verify(file, temporary, compressed=name != file.name)
    # Else an old corrupt copy in the other form, plain or compressed, would still be found first.
    other = file.name if name != file.name else f"{name}.gz"
    destination.with_name(Path(other).name).unlink(missing_ok=True)
