"""Experiments compute; they write numbers, never pictures. One module an experiment."""
