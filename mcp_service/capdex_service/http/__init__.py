"""Plain HTTP over a reader."""
