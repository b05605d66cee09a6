"""Modules with the names that the suites of the peers import, made of this library."""
