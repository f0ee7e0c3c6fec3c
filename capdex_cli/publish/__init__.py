"""Parts of the commands that sign and send: the account, the question, the visible steps."""
