"""Keys and signers: encrypted key files, passphrases, and signers outside this process."""
