"""What a GPU kernel says in the plainest words, for every target."""
