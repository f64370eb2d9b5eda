"""What ruff says of the code in the notebooks' cells, which it cannot read in Markdown.

``python -m tools.lint_cells`` names each line of a notebook that has a fault, and exits with 1 if any has.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = "```"
CELL = "```{code-cell}"
IGNORED = {
    "B018": "the last line of a cell is what it shows",
    "B905": "panels, colours and marks are paired with the rows that there are",
    "E402": "a cell imports what it needs",
    "E501": "captions and alternative texts are prose",
    "I001": "long imports are wrapped, not one name a line, so that a cell fits on a screen",
}


def code_of(notebook: str) -> str:
    """Return the code of a notebook's cells at the lines where it is; all other lines are empty.

    >>> code_of("# Title\\n```{code-cell} python3\\n:tags: [hide-input]\\nx = 1\\n```\\nProse.")
    '\\n\\n\\nx = 1\\n\\n'
    """
    lines = []
    in_cell = in_options = False
    for line in notebook.split("\n"):
        if line.startswith(CELL):
            in_cell = in_options = True
            lines.append("")
        elif in_cell and line.startswith(FENCE):
            in_cell = False
            lines.append("")
        elif in_cell:
            in_options = in_options and line.startswith(":")
            lines.append("" if in_options else line)
        else:
            lines.append("")
    return "\n".join(lines)


def faults(notebooks: list[Path], root: Path = ROOT) -> list[str]:
    """Return what ruff finds in the cells of some notebooks, with the file and line of each fault."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for notebook in notebooks:
            extracted = folder / notebook.relative_to(root).with_suffix(".py")
            extracted.parent.mkdir(parents=True, exist_ok=True)
            extracted.write_text(code_of(notebook.read_text(encoding="utf-8")), encoding="utf-8")
        return [
            f"{Path(fault['filename']).relative_to(folder).with_suffix('.md')}"
            f":{fault['location']['row']}: {fault['code']} {fault['message']}"
            for fault in _found_by_ruff(folder)
        ]


def _found_by_ruff(folder: Path) -> list[dict]:
    """Return ruff's records of all faults below a folder, by the settings of this checkout."""
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "json"]
    command += ["--config", str(ROOT / "pyproject.toml")]
    command += ["--extend-ignore", ",".join(IGNORED), str(folder)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    if checked.returncode not in {0, 1}:
        raise RuntimeError(checked.stderr)
    return json.loads(checked.stdout)


def main() -> int:
    """Print all faults of the book's notebooks, and return the exit code."""
    found = faults(sorted((ROOT / "notebooks").rglob("*.md")))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
