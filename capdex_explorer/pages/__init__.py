"""What each page shows: values of queries in, a view (a template with its data) out."""
