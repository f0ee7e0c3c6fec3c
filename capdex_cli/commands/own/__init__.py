"""Commands of owners: change the releases and the ownership of a name."""
