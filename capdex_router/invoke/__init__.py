"""The one invoke pipeline: what a call may be and give, and results that are too long."""
