"""What the papers say, held against our results: claims, judges and verdicts."""

from companion.claims.estimates import Estimate, look_up
from companion.claims.model import Claim, Paper, load_claims, load_papers
from companion.claims.verdicts import UNDECIDED, Judgement, Tolerance, Verdict, judge_values
from companion.claims.verify import ClaimVerdict, verdict_of

__all__ = [
    "UNDECIDED",
    "Claim",
    "ClaimVerdict",
    "Estimate",
    "Judgement",
    "Paper",
    "Tolerance",
    "Verdict",
    "judge_values",
    "load_claims",
    "load_papers",
    "look_up",
    "verdict_of",
]
