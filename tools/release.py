"""Check that everything which names the version of a release names the same one.

``python tools/release.py v0.1.0`` ends with 0, or with 1 and a line for each place that differs.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = {
    "attnlib/version.py": r'__version__ = "(.+)"',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## (\S+?),? ",
}


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version that each place names; the first where there are several, empty where none is."""
    found = {}
    for place, pattern in PLACES.items():
        match = re.search(pattern, (root / place).read_text(encoding="utf-8"), re.MULTILINE)
        found[place] = match[1] if match else ""
    return found


def differences(tag: str, root: Path = ROOT) -> list[str]:
    """Return a line for each place that names another version, or that says it is not released."""
    wanted = tag.removeprefix("v")
    lines = [
        f"{place}: {version}, not {wanted}" for place, version in versions(root).items() if version != wanted
    ]
    head = re.search(r"^## .*$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if head and "not released" in head[0]:
        lines.append(f"CHANGELOG.md: {head[0]!r} says that it is not released")
    return lines


if __name__ == "__main__":
    wrong = differences(sys.argv[1])
    print("\n".join(wrong) or f"{sys.argv[1]}: all places agree")
    sys.exit(bool(wrong))
