"""Reading the index: resolve, search, list releases and names, report status and digests."""
