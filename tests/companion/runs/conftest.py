"""What the tests of training runs share."""

import pytest


@pytest.fixture
def kill_at():
    """A report that ends a run at an update, by a KeyboardInterrupt."""

    def kill_at(update):
        def report(*told):
            if told[-3] == update:  # (spec,) step, steps, loss
                raise KeyboardInterrupt

        return report

    return kill_at
