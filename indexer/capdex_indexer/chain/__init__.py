"""The canonical chain as one stream of steps: block ranges, and reorgs."""
