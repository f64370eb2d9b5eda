"""The paper's counterexample, which its notebook draws and its experiment works out; without torch."""

COUNTEREXAMPLE = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))  # γ of each position, equation 30
