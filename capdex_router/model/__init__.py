"""The values that every part of the router shares: references, results, capabilities, requests."""
