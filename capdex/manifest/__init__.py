"""The manifest of a package: its fields, read and checked from the bytes of a file (P7 to P10a)."""
