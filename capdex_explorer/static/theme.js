// Loaded before the first paint, so that a chosen theme never flashes in the other one.
try {
  const kept = localStorage.getItem("theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch { /* storage may be off */ }
