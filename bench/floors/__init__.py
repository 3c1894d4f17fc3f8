"""Floors: the least that any program would do, as scripts."""
