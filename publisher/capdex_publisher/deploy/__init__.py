"""Deploy the contracts at addresses that follow from their code, and find them again."""
