"""What Python, the parser and the names of the dialect allow."""
