"""What names are bound to, which ones the new text needs, and which ones go with their last use."""
