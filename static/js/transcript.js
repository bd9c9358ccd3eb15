// All steps of a trajectory in one list: over the picture, or as a column of its own on a wide screen.
// It does not import viewer.js, which imports this file: file names with hashes rule out circular imports.

export class Transcript {
  constructor(viewer, announce, showMessage, fetched) {
    Object.assign(this, { viewer, announce, showMessage, fetched });
    this.panel = document.createElement("section");
    this.panel.id = "transcript";
    this.panel.className = "transcript";
    this.panel.tabIndex = 0;
    this.panel.setAttribute("aria-label", "Transcript");
    this.panel.hidden = true;
    this.list = document.createElement("div");
    this.panel.append(closing(), this.list);
    viewer.stage.before(this.panel);
    this.panel.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("step", () => this.markCurrent());
    document.addEventListener("keydown", (event) => {
      const covers = !this.panel.hidden && !this.wide && !event.target.matches("textarea, select, input");
      if (event.key === "Escape" && covers) this.toggle(false);
    });
  }

  get wide() { return matchMedia("(min-width: 2000px)").matches; }

  async toggle(show = this.panel.hidden) {
    if (show && !this.item(this.viewer.index)) await this.load(this.viewer.index);
    this.panel.hidden = !show;
    document.querySelector("a[data-transcript]")?.setAttribute("aria-expanded", String(show));
    if (!show) document.getElementById("main").focus({ preventScroll: true });
    this.markCurrent();
    this.announce(show ? "Transcript shown" : "Transcript closed");
  }

  async load(from) {
    const desk = encodeURIComponent(this.viewer.address);
    const page = await this.fetched(`${this.viewer.stage.dataset.transcript}?from=${from}&desk=${desk}`, "transcript");
    this.list.replaceChildren(...page.body.childNodes);
    document.dispatchEvent(new CustomEvent("transcript"));
  }

  item(index) { return this.panel.querySelector(`li[data-step="${index}"]`); }

  async markCurrent() {
    if (this.panel.hidden) return;
    const index = this.viewer.index;
    if (!this.item(index)) await this.load(index).catch((problem) => this.showMessage(problem.message));
    if (index !== this.viewer.index) return;
    this.panel.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const item = this.item(index);
    item?.setAttribute("aria-current", "step");
    item?.scrollIntoView({ block: "nearest" });
  }

  // Show the chosen step. Close the list where it covers the screenshot.
  clicked(event) {
    const part = event.target.closest("[data-part]");
    if (part) {
      event.preventDefault();
      const from = Number(new URL(part.href).searchParams.get("from"));
      this.load(from).then(() => this.panel.focus(), (problem) => this.showMessage(problem.message));
    } else if (event.target.closest("[data-close]")) {
      this.toggle(false);
    } else if (event.target.closest("a[data-step]") && !this.wide && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      this.toggle(false);
    }
  }
}

function closing() {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "small close" });
  button.dataset.close = "";
  const key = document.createElement("kbd");
  key.textContent = "t";
  button.append("Close ", key);
  return button;
}
