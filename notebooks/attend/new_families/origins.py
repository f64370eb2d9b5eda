"""Where a family of tasks comes from; without torch, so that a notebook that draws imports it at no cost."""

NEW, KNOWN, EVERY = "new", "known", "all"
