"""The version of attnlib, in a module that imports nothing, so that any other may read it."""

__version__ = "0.1.0"
