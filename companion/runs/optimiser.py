"""Adam as torch has it, without the compiler that its first step loads."""

from inspect import unwrap

import torch


class Adam(torch.optim.Adam):
    """:class:`torch.optim.Adam` that leaves torch's compiler on disk.

    torch marks the methods below as ones that its compiler must not trace, and loads the compiler to
    say so: 1.7 seconds in every process that trains, about as long as a network of the quick profile takes.
    Nothing is compiled here. Without the marks the methods are torch's own, and the numbers are the same.
    """

    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    zero_grad = unwrap(torch.optim.Adam.zero_grad)
    state_dict = unwrap(torch.optim.Adam.state_dict)
    load_state_dict = unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))
