"""Plain values that no function or class of the library takes, and in which words: ``refused.yaml``."""

import pkgutil
from functools import partial

from tests.attnlib.refusals import refused
from tests.tables import beside

REFUSED = beside(__file__, "refused")

test_values_that_make_no_sense_are_refused = refused(
    *(
        (partial(pkgutil.resolve_name(name), **entry.get("with", {}) | values), message)
        for name, entry in REFUSED.items()
        for values, message in entry["refused"]
    )
)
