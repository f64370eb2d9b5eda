"""What reproduces the papers: it works in a checkout, on top of the library `attnlib`."""
