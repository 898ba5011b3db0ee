"""What passes write with: statements and plans of them, tiles, substitution, texts of numbers and values."""
