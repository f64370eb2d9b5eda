"""The commands of ``attnlib``; :mod:`attnlib.cli` reads their options and calls them."""
