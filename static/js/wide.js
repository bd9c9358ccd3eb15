// What only a wide screen has room for: the steps before and after below the step, and the guidelines that the task touches.
// It does not import viewer.js, which imports this file: file names with hashes rule out circular imports.

export class Wide {
  constructor(viewer) {
    this.viewer = viewer;
    this.steps = made("div", { className: "neighbours" });
    viewer.strip.before(this.steps);
    listTouchedRules();
    document.addEventListener("step", () => this.later());
    this.later();
  }

  // After the step itself is painted.
  later() {
    const index = this.viewer.index;
    requestAnimationFrame(() => setTimeout(() => this.show(index)));
  }

  async show(index) {
    const around = [["Before", index - 1], ["After", index + 1]].filter(([, step]) => step >= 0 && step <= this.viewer.last);
    const pages = await Promise.all(around.map(([, step]) => this.viewer.page(step).catch(() => null)));
    if (this.viewer.index !== index) return;
    const focused = this.steps.contains(document.activeElement);
    this.steps.replaceChildren(...around.map(([name, step], place) => this.link(name, step, pages[place])));
    if (focused) this.steps.querySelector("a")?.focus({ preventScroll: true });
  }

  link(name, step, page) {
    const link = made("a", { href: `${this.viewer.address}step=${step}`, className: name.toLowerCase() });
    link.dataset.step = step;
    const action = page?.querySelector("#step .action")?.textContent.trim() ?? "";
    const svg = page?.querySelector(".shot svg")?.cloneNode(true);
    svg?.setAttribute("aria-hidden", "true");
    link.append(svg ?? made("span", { className: "none", textContent: page ? "no screenshot" : "not loaded" }));
    link.append(made("span", { className: "told", textContent: `${name} · step ${step}${action && `: ${action}`}` }));
    return link;
  }
}

function listTouchedRules() {
  const fields = document.querySelector("#label-form > .fields");
  const terms = [...document.querySelectorAll("#rules .term.touched")];
  if (!fields || !terms.length) return;
  const section = made("section", { className: "touched-rules", tabIndex: 0, ariaLabel: "Guidelines for this task" });
  const all = made("button", { type: "button", className: "quiet small", textContent: "all guidelines " });
  all.dataset.opens = "rules";
  all.append(made("kbd", { textContent: "g" }));
  const head = made("div", { className: "rules-head" });
  head.append(made("h2", { textContent: "Guidelines for this task" }), all);
  const list = made("dl", { className: "terms" });
  list.append(...terms.map((term) => {
    const copy = term.cloneNode(true);
    copy.querySelectorAll(".example").forEach((example) => example.remove());
    return copy;
  }));
  section.append(head, list);
  fields.append(section);
}

function made(name, properties) { return Object.assign(document.createElement(name), properties); }
