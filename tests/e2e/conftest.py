"""What the tests of whole processes share with those of the book's code."""

from tests.companion.conftest import one_thread, project

__all__ = ["one_thread", "project"]
