"""Decisions about calls: grants, consent, scope tokens and secrets."""
