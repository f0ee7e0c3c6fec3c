"""Keys and signers: encrypted key files, passphrases, and signers outside this process."""

from capdex_publisher.keys.secret import Secret, read_passphrase

__all__ = ["Secret", "read_passphrase"]
