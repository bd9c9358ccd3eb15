// The queue has one key: u takes the last submit back.

document.addEventListener("keydown", (event) => {
  if (event.key !== "u" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) return;
  document.querySelector("[data-undo]")?.click();
});
