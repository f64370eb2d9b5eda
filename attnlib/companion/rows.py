"""A row of the verdicts: one claim at one profile, beside what was expected of it."""

from dataclasses import dataclass

from attnlib.companion.claims import Claim
from attnlib.companion.verdicts import Judgement, Verdict


@dataclass(frozen=True)
class Row:
    """One claim at one profile.

    Attributes:
        stale: the code behind the result has changed since it was made.
        starred: for most runs ours is ξ*, which the tables print with an asterisk.
    """

    claim: Claim
    profile: str
    judgement: Judgement
    stale: bool = False
    expected: Verdict | None = None
    starred: bool = False

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    @property
    def changed(self) -> bool:
        """It differs from the expected verdict, both resting on numbers; or nothing was expected yet."""
        if self.expected is None:
            return self.unexpected
        return self.expected.judged and self.verdict.judged and self.verdict is not self.expected

    @property
    def unexpected(self) -> bool:
        """A verdict from a current result that nobody has accepted."""
        return self.expected is None and self.verdict.judged and not self.stale

    @property
    def problem(self) -> str:
        """What is wrong with a current result that lacks the claim's key; empty when nothing is."""
        return self.judgement.reason if self.judgement.miswired and not self.stale else ""

    def as_json(self) -> dict[str, object]:
        return {
            "claim": self.claim.id,
            "paper": self.claim.paper,
            "experiment": self.claim.experiment,
            "profile": self.profile,
            "verdict": self.verdict.value,
            "expected": None if self.expected is None else self.expected.value,
            "changed": self.changed,
            "stale": self.stale,
            "problem": self.problem,
            "reason": self.judgement.reason,
            "evidence": {label: estimate.as_json() for label, estimate in self.judgement.evidence.items()},
        }
