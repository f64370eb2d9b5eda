"""Hooks: what is caught, and that a model is left as it was."""

import pytest
import torch
from torch import nn

from attnlib.adapters.hooks import Hooks
from attnlib.errors import BadInput
from tests.attnlib.adapters.adapter_builders import hooks_on


def test_inputs_and_outputs_are_caught_without_a_copy():
    model, given = nn.Sequential(nn.Identity(), nn.Identity()), torch.ones(2)
    with Hooks(model) as hooks:
        hooks.catch_input("first", model[0])
        hooks.catch_output("second", model[1])
        model(given)
    assert hooks.inputs["first"] is given
    assert hooks.outputs["second"] is given


def test_a_module_that_runs_again_is_refused():
    model = nn.Sequential(nn.Identity())
    for catch in ("catch_input", "catch_output"):
        with Hooks(model) as hooks:
            getattr(hooks, catch)("it", model[0])
            model(torch.ones(2))
            with pytest.raises(BadInput, match="it runs more than once in a pass"):
                model(torch.ones(2))
    assert hooks_on(model) == 0


def test_what_a_module_returns_can_be_replaced():
    model = nn.Sequential(nn.Identity())
    with Hooks(model) as hooks:
        hooks.replace_output("it", model[0], lambda output: output + 1)
        assert model(torch.ones(1)).tolist() == hooks.outputs["it"].tolist() == [2]
    assert model(torch.ones(1)).tolist() == [1]


def test_an_input_given_by_name_is_caught():
    layer, given = nn.Linear(2, 2), torch.ones(1, 2)
    with Hooks(layer) as hooks:
        hooks.catch_input("in", layer)
        layer(input=given)
    assert hooks.inputs["in"] is given


def test_what_a_module_is_called_with_can_be_rewritten():
    model = nn.Sequential(nn.Identity())
    with Hooks(model) as hooks:
        hooks.rewrite(model[0], lambda given, named: ((given[0] + 1,), named))
        assert model(torch.ones(1)).tolist() == [2]
    assert model(torch.ones(1)).tolist() == [1]


@pytest.mark.parametrize("fails", [False, True])
def test_hooks_modes_and_gradients_are_as_before(fails):
    model = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5), nn.Linear(4, 4)).train()
    model[1].eval()
    modes = [module.training for module in model.modules()]
    try:
        with Hooks(model) as hooks:
            hooks.catch_input("in", model[2])
            hooks.catch_output("out", model[2])
            hooks.rewrite(model[0], lambda given, named: (given, named))
            assert hooks_on(model) == 3
            assert not any(module.training for module in model.modules())
            out = model(torch.ones(2, 4))
            assert not out.requires_grad
            assert torch.equal(hooks.inputs["in"], torch.ones(2, 4))  # no dropout
            if fails:
                raise RuntimeError
    except RuntimeError:
        assert fails
    assert hooks_on(model) == 0
    assert [module.training for module in model.modules()] == modes
    assert torch.is_grad_enabled()
