"""The explorer over HTTP: routes, answers with their headers, and static files."""
