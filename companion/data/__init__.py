"""The data layer: where published files lie, and the tasks and texts that are made of them."""
