"""YAML files beside tests: what is given, worked by hand, said or refused."""

from pathlib import Path

import yaml
from yaml.constructor import ConstructorError


class Table(yaml.SafeLoader):
    r"""A name that stands twice would hide what it names first.

    >>> yaml.load("one: 1\none: 2", Table)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    yaml.constructor.ConstructorError: 'one' stands twice...
    """

    def compose_mapping_node(self, anchor):
        node = super().compose_mapping_node(anchor)
        names = [key.value for key, _ in node.value]
        if twice := [name for at, name in enumerate(names) if name in names[:at]]:
            raise ConstructorError(None, None, f"{twice[0]!r} stands twice", node.start_mark)
        return node


def beside(test, name, loader=Table):
    return yaml.load(Path(test).with_name(f"{name}.yaml").read_text(encoding="utf-8"), loader)
