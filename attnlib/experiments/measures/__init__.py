"""What each chapter asks of one trained model, kept beside the model; a module a chapter."""
