"""Our Adam is torch's, and loads no compiler."""

import subprocess
import sys

import pytest
import torch

from companion.runs.optimiser import Adam

TRAINED = """
import sys
import torch
from companion.runs.optimiser import Adam

weight = torch.nn.Parameter(torch.ones(3))
optimiser = Adam([weight], fused=True)
optimiser.zero_grad()
weight.square().sum().backward()
optimiser.step()
print("torch._dynamo" in sys.modules)
"""


def trained(kind):
    """A weight after five updates by an optimiser of this kind."""
    weight = torch.nn.Parameter(torch.linspace(-1, 1, 7, dtype=torch.float64))
    optimiser = kind([weight], lr=0.1, weight_decay=0.01, fused=True)
    for _ in range(5):
        optimiser.zero_grad()
        weight.exp().sum().backward()
        optimiser.step()
    return weight.detach()


def test_its_updates_are_those_of_torch():
    assert torch.equal(trained(Adam), trained(torch.optim.Adam))


@pytest.mark.slow
def test_an_update_in_a_new_process_does_not_load_the_compiler():
    done = subprocess.run([sys.executable, "-c", TRAINED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
