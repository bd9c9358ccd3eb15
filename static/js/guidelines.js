// The guidelines: a search that filters their terms, on their page and in the panel beside the picture.

// Shows the search field in ``root`` and lets it hide the terms that lack one of its words.
export function searchable(root) {
  const box = root.querySelector("[data-terms]");
  const [field, count] = [box.querySelector("input"), box.querySelector("output")];
  const terms = [...root.querySelectorAll("[data-term]")].map((term) => [term, term.textContent.toLowerCase()]);
  box.hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    terms.forEach(([term, text]) => { term.hidden = !words.every((word) => text.includes(word)); });
    root.querySelectorAll("[data-group]").forEach((group) => { group.hidden = !group.querySelector("[data-term]:not([hidden])"); });
    const left = terms.filter(([term]) => !term.hidden).length;
    count.textContent = words.length ? `${left} of ${terms.length}` : "";
  });
  return field;
}

// Not modal: steps and keys go on beside it.
export class Panel {
  constructor(panel, announce) {
    this.panel = panel;
    this.announce = announce;
    this.field = searchable(panel);
    document.getElementById("main").append(panel); // over the picture, as a part of the desk's grid
  }

  get open() { return !this.panel.hidden; }

  toggle() {
    if (this.open) return this.close();
    this.panel.hidden = false;
    return this.announce("Guidelines opened beside the screenshot; Shift G searches them, Escape closes them");
  }

  search() {
    this.panel.hidden = false;
    this.field.focus();
    this.field.select();
  }

  close() {
    if (this.panel.contains(document.activeElement)) document.getElementById("main").focus({ preventScroll: true });
    this.panel.hidden = true;
    this.announce("Guidelines are closed");
  }
}

if (!document.getElementById("rules")) searchable(document);
