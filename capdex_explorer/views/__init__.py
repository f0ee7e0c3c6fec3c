"""How values look: text made safe to show, verdicts in words, schemas as rows, charts, badges."""
