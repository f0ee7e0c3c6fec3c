"""Documents as immutable arrays: postings, merges of them, and their form as bytes."""
