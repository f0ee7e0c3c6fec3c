"""CMP: manifests, intents, command templates, learned tools, and the five methods."""
