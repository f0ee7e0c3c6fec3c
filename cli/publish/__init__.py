"""What the commands that sign and send share: the account, the question, the visible steps."""
