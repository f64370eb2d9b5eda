"""The paper's counterexample, which pages draw and the experiment solves, and two labels; without torch."""

COUNTEREXAMPLE = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))  # γ of each position, equation 30
TWO_LABELS = ((-2.0, 0.0), (-0.5, 0.0), (2.5, 0.0))  # of the correct label and the other one, by position
