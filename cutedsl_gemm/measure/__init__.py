"""What is measured and how it is reported: bench, ladder, wavefronts, hierarchy and demo."""
