"""The Model Context Protocol over a reader: tools, resources, prompts, subscriptions."""
