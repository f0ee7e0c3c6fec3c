"""What `capdex doctor` looks at: this machine, the chain, and the services around it."""
