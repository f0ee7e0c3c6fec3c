"""Health, counters and Prometheus metrics of a node."""
