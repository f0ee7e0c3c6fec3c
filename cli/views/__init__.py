"""How answers, problems and progress are written for people; used by several commands."""
