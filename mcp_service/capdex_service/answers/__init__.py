"""The content of answers: JSON, texts for models, errors; no protocol and no database."""
