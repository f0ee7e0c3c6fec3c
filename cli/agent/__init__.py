"""The router of this user, put together for the commands that use it."""
