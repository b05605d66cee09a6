"""What is measured and shown: bench, ladder, wavefronts, hierarchy, demo, and what they share."""
