"""Search: the engine of a reader, kept up with the database, and the pages of its hits."""
