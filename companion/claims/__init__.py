"""What the papers say, held against our results: claims, judges and verdicts."""

from companion.claims.estimates import Estimate
from companion.claims.model import Claim, load_claims, load_papers
from companion.claims.verdicts import UNDECIDED, Judgement, Tolerance, Verdict, judge_values
from companion.claims.verify import ClaimVerdict

__all__ = ["UNDECIDED", "Claim", "ClaimVerdict", "Estimate", "Judgement", "Tolerance", "Verdict"]
__all__ += ["judge_values", "load_claims", "load_papers"]
