"""The book: prose that takes its numbers and verdicts from results, and the pages around it."""
