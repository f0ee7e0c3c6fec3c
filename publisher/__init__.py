"""Authoring and publishing: scaffold, validate, sign, upload, send, wait."""
