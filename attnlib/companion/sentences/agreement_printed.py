"""What the second paper prints of agreement beside ours: tables, readings of a name, and how near is near."""

from attnlib.companion.project import Project, find_root
from attnlib.companion.sentences.two_readings import readings_sentences
from attnlib.experiments.result import Result
from attnlib.plotting.agreement import data_name, data_of
from companion.claims import ClaimVerdict, Tolerance, load_papers
from companion.claims.tables import published_table
from companion.claims.verify import verify

LOOKED_UP = "5"  # the table whose accuracies the sentence on baselines speaks of


def baselines_sentence(result: Result) -> str:
    """How often the commonest answer is right in each printed set that was run, and what that leaves of 5.

    The tables judge the paper profile, whichever is shown; nothing beside a reader's data or before any run.
    """
    path = Project(find_root()).results("paper") / "agreement.json"
    if "own" in result.values or not path.is_file():
        return ""
    judged, accuracies, parts = Result.load(path), _accuracies(), []
    for name in data_of(judged):
        common = judged.values[name]["validation"]["accuracy"]["majority"]
        if name in accuracies:
            judge = min(accuracies[name], key=lambda judge: judge.published)
            parts.append(
                f"* {data_name(name)}: {common:.1f} %. The lowest accuracy that Table {LOOKED_UP} prints, "
                f"{judge.published:g}, is to be met within {judge.short_of(common).allowed:.2g}."
            )
    if not parts:
        return ""
    return "\n".join(["How often the commonest answer is right, on validation samples:\n", *parts])


def printed_tables(result: Result, *tables: str) -> str:
    """Published tables as Markdown, ours below each number that was judged; none beside a reader's data."""
    if "own" in result.values:
        return "These are your own data; the paper prints nothing of them."
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    rows = _printed_numbers()
    return "\n".join(published_table(paper.tables, name, rows) for name in tables)


def two_readings(result: Result) -> str:
    """Which reading of a printed name comes nearer to its numbers; nothing beside a reader's data."""
    return "" if "own" in result.values else readings_sentences(_printed_numbers())


def _printed_numbers() -> list[ClaimVerdict]:
    return [row for row in verify(find_root(), experiment="agreement") if row.claim.number]


def printed_agreement() -> dict[tuple[str, str], float]:
    """What Table 5 has of the columns of Table 2 and of chance, by our name of the data set and column."""
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    found = {}
    for claim in paper.claims:
        if claim.number and claim.published.reference.table == "5":
            data, *_, column, measure = claim.keys[0].split(".")
            if measure in ("agreement_optimistic", "chance"):
                found[data, "chance" if measure == "chance" else column] = claim.published.value
    return found


def _accuracies() -> dict[str, list[Tolerance]]:
    """How the numbers of :data:`LOOKED_UP` are judged that have the commonest answer for baseline, by set."""
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    found: dict[str, list[Tolerance]] = {}
    for claim in paper.claims:
        if claim.number and claim.published.reference.table == LOOKED_UP and claim.judge.unrelated:
            found.setdefault(claim.judge.unrelated.partition(".")[0], []).append(claim.judge)
    return found
