"""What turns experiments into a book: notebooks, workflow, claims, site."""
