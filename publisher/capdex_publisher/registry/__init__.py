"""The registry contract: what it says of names and releases, and every change to them."""
