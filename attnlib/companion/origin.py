"""What a figure's page says beneath its figures: the verdicts, and where the numbers come from.

Kept out of the notebook, whose bytes are a function of the numbers alone.
"""

from html import escape
from pathlib import Path

from attnlib.companion.markup import badge, plain
from attnlib.companion.project import PROFILES, Project
from attnlib.experiments.result import Result
from companion.claims import UNDECIDED, ClaimVerdict
from companion.claims.verify import is_stale, verify

ORDER = ("paper", "quick")  # as the page shows them


def origin_markdown(figure: str, root: Path) -> str:
    """The closing sections of a figure's page, as MyST Markdown.

    Args:
        figure: id, such as ``attend/temporal_share``.
        root: the checkout.
    """
    experiment = figure.rpartition("/")[2]
    project = Project(root)
    claims = (root / "claims").is_dir()
    rows = verify(root, experiment=experiment) if claims else []
    rows = [row for row in rows if not row.claim.number]  # these stand in tables of the page's own
    results = {profile: project.results(profile) / f"{experiment}.json" for profile in ORDER}
    boxes = [_provenance(Result.load(path)) for path in results.values() if path.is_file()]
    parts = []
    if rows:
        parts += ["## Verdicts", _verdicts(rows, "../" * figure.count("/"))]
    if boxes:
        parts += ["## Where the numbers come from", *boxes]
    return "\n\n".join(parts) + "\n"


def _verdicts(rows: list[ClaimVerdict], up: str) -> str:
    lines = ["| statement, in our words | quick | paper |", "|---|---|---|"]
    for claim in dict.fromkeys(row.claim for row in rows):
        cells = {row.profile: _verdict(row) for row in rows if row.claim == claim}
        link = f'<a href="{up}scorecard.html#claim-{claim.id}">{plain(claim.place)}</a>'
        verdicts = " | ".join(cells.get(profile, "") for profile in PROFILES)
        lines.append(f"| {plain(claim.says)} {link} | {verdicts} |")
    return "\n".join(lines)


def _verdict(row: ClaimVerdict) -> str:
    stale = ' <span class="verdict stale">stale</span>' if row.stale else ""
    undecided = "<br>undecided" if row.judgement.reason == UNDECIDED else ""
    return badge(row.verdict) + stale + undecided


def _provenance(result: Result) -> str:
    origin = result.provenance
    commit = (origin.get("commit") or "not in a repository")[:12]
    entries = {
        "profile": result.profile,
        "made": origin.get("date", "unknown"),
        "commit": commit + (", with changes not committed" if origin.get("dirty") else ""),
        "code": result.provenance.get("code", "unknown")
        + (" — stale: it has changed since" if is_stale(result) else ", the present one"),
        "on": f"{origin.get('device', 'unknown')}, {origin.get('threads', '?')} thread(s), "
        f"{origin.get('platform', '')}, Python {origin.get('python', '?')}",
        "training": _training(result),
        "packages": ", ".join(f"{name} {version}" for name, version in origin.get("packages", {}).items()),
        "settings": ", ".join(
            f"{name} = {_plain(value)}" for name, value in result.config.items() if value is not None
        ),
        "data": _data(result.data),
    }
    if result.missing:
        entries["not run yet"] = ", ".join(result.missing)
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(text))}</dd>" for name, text in entries.items())
    return f'<div class="provenance"><dl>{rows}</dl></div>'


def _training(result: Result) -> str:
    number = result.provenance.get("networks", len(result.models))
    machines = result.provenance.get("trained_on", ["an unknown machine"])
    seconds = result.provenance.get("training_seconds")
    if not number and not seconds:
        return "none"
    on = f", on {' and '.join(machines)}" if machines else ""
    return f"{_duration(seconds)} for {number} model{'' if number == 1 else 's'}{on}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _plain(value: object) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _data(data: dict[str, str]) -> str:
    if not data:
        return "none: every sample is made by rule"
    return ", ".join(f"{name} (sha256 {digest[:8]}…)" for name, digest in data.items())
