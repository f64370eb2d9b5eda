"""A store that notes what was asked of it: some networks are chosen by what became of others."""

from collections.abc import Callable, Sequence

from attnlib.errors import NotMeasured
from attnlib.training.keys import Spec
from attnlib.training.store import Store


class NotingStore(Store):
    """A :class:`~attnlib.training.store.Store` that knows afterwards which models an experiment used.

    Attributes:
        used: the models behind an answer, each once, in order of their first.
        lacking: the models without an answer in a store that does not train, likewise.
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.used: dict[Spec, None] = {}
        self.lacking: dict[Spec, None] = {}

    def kept(
        self, spec: Spec, measure: Callable[..., dict], *, beside: Sequence[Spec] = (), **settings: object
    ) -> dict:
        """As :meth:`Store.kept`, noted."""
        try:
            found = super().kept(spec, measure, beside=beside, **settings)
        except NotMeasured:
            self.lacking[spec] = None
            raise
        self.used |= dict.fromkeys((spec, *beside))
        return found
