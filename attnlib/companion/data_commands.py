"""What ``attnlib data list``, ``fetch`` and ``check`` do."""

import sys
from importlib.util import find_spec

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnlib.errors import AttnlibError
from companion.data.sources import cache_folder, check, dataset, fetch, find, mirror_folder, names


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=160, highlight=False)


def list_data() -> None:
    """A line a data set: how many of its files are here, whether its text may be passed on, its licence."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "files here", "redistribution", "licence", "what"):
        table.add_column(heading, no_wrap=heading == "name")
    for name in names():
        data = dataset(name)
        here = sum(find(data, file) is not None for file in data.files)
        cells = f"{here} of {len(data.files)}", data.redistribution, data.licence, data.title
        table.add_row(Text(name), *map(Text, cells))
    console = _console()
    console.print(table)
    mirror = mirror_folder()
    console.print(f"mirror: {mirror or 'none; set ATTNLIB_DATA to a folder that holds the data sets'}")
    console.print(f"cache:  {cache_folder()}")


def fetch_data(chosen: list[str]) -> int:
    """Download what is missing; 1 when a data set could not be had in full, after all have been tried."""
    console, code = _console(), 0
    for data in [dataset(name) for name in chosen or names()]:
        # pooch draws its bars with tqdm, which comes with the extra `book`.
        progress = sys.stderr.isatty() and find_spec("tqdm") is not None
        try:
            states = fetch(data, progress=progress)
        except AttnlibError as error:
            console.print(Text.assemble((f"{data.name}: ", "bold"), (str(error), "red")), soft_wrap=True)
            code = 1
            continue
        code = max(code, _tell(console, data.name, states, verbose=False, bad=("missing", "corrupt")))
    return code


def check_data(chosen: list[str]) -> int:
    """Compare what is here with the checksums; 1 when a file is corrupt. A missing file is no error."""
    console = _console()
    codes = [
        _tell(console, data.name, check(data), verbose=bool(chosen), bad=("corrupt",))
        for data in [dataset(name) for name in chosen or names()]
    ]
    return max(codes)


def _tell(console: Console, name: str, states: list, *, verbose: bool, bad: tuple[str, ...]) -> int:
    counts = {
        state: sum(status.state == state for status in states)
        for state in dict.fromkeys(s.state for s in states)
    }
    console.print(f"[bold]{name}[/bold]: " + ", ".join(f"{count} {state}" for state, count in counts.items()))
    for status in states:
        if status.state == "corrupt" or (verbose and status.state != "ok"):
            detail = status.detail or "nobody here has ever held it, so there is nothing to compare it with"
            line = f"  {status.file.name}: {status.state}: {detail}"
            console.print(Text(line, style="red" if status.state in bad else ""), soft_wrap=True)
    return int(any(status.state in bad for status in states))
