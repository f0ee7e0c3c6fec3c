"""Commands that check, explain and show: the installation, codes, CIDs, settings, help."""
