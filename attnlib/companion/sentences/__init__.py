"""What the chapters say in words and tables, made from the numbers; one module a chapter."""
