// Pages work without this file. It adds copy buttons, the choice of a theme, dropped files and live releases.
"use strict";
const root = document.documentElement;
const theme = document.getElementById("theme");
const dark = () => root.dataset.theme === "dark" ||
  (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
const show = (wanted) => {
  root.dataset.theme = wanted;
  theme.setAttribute("aria-pressed", String(wanted === "dark"));
};
theme.hidden = false;
theme.setAttribute("aria-pressed", String(dark()));
theme.addEventListener("click", () => {
  show(dark() ? "light" : "dark");
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* the choice lasts for this page */ }
});

const reveal = (part) => {
  for (const one of part.querySelectorAll("[data-copy], [data-copy-from]")) one.hidden = false;
};
reveal(document);
document.addEventListener("htmx:after:swap", () => reveal(document));
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  const from = button.dataset.copyFrom;
  const text = from ? document.getElementById(from).textContent : button.dataset.copy;
  const said = document.getElementById("said");
  try {
    await navigator.clipboard.writeText(text);
    said.textContent = "Copied.";
    button.textContent = "Copied";
    button.classList.add("good");
    setTimeout(() => { button.textContent = "Copy"; button.classList.remove("good"); }, 1200);
  } catch {
    said.textContent = "The browser did not allow to copy.";
  }
});

const drop = document.querySelector("[data-drop]");
if (drop) {
  const box = drop.querySelector("textarea");
  const over = (event) => { event.preventDefault(); drop.classList.add("over"); };
  drop.addEventListener("dragover", over);
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    drop.querySelector("input[type=file]").files = event.dataTransfer.files;
    box.value = "";
    drop.requestSubmit();
  });
}

const live = document.querySelector("[data-live]");
if (live) {
  const told = document.getElementById("live");
  const source = new EventSource(live.dataset.live);
  let waiting = false;
  source.addEventListener("open", () => { told.textContent = "New releases appear by themselves."; });
  source.addEventListener("error", () => { told.textContent = "The connection is lost; it is tried again."; });
  source.addEventListener("change", () => {
    if (waiting) return;
    waiting = true; // many changes of one block are one update
    setTimeout(async () => {
      waiting = false;
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("[data-live]");
      if (!fresh) return;
      live.replaceChildren(...fresh.children);
      reveal(live);
    }, 1100); // a node makes this page at most once a second
  });
}
