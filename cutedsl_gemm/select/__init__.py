"""Which plan a product gets: kernel registry, choice, tuning, explanation, precompilation."""
