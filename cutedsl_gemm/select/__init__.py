"""Which plan a product gets: registry, choice, timing and tuning, explanation, precompilation."""
