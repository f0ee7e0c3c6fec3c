"""Installation: nodes compared, packages verified and agreed to, and the lock file of them."""
