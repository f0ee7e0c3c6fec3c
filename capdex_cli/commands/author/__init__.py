"""Commands of authors: start, check, sign, claim and publish a package."""
