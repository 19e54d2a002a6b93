"""By its name alone."""
