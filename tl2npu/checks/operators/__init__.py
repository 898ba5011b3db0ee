"""What single operators and ``T.Parallel`` loops become."""
