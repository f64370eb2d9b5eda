"""What people see of an analysis, and what makes one of a checkpoint and a text."""
