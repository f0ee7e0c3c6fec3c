"""Intents: the files of CMP, the templates of commands, and the sentences that ask for them."""
