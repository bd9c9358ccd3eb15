// <redaction-editor>: boxes drawn over a picture, each with its row of numbers. The rows are what is sent, so that
// everything can be done by keyboard, and without script.

const SIDES = ["x", "y", "width", "height"];
const SMALLEST = 3; // pixels a side: less is a click, not a box

class RedactionEditor extends HTMLElement {
  connectedCallback() {
    this.svg = this.querySelector("svg");
    this.layer = this.querySelector("[data-boxes]");
    this.rows = this.querySelector("[data-rows]");
    this.said = this.querySelector("[data-said]");
    this.classList.add("scripted");
    for (const part of this.querySelectorAll(".script-only")) part.hidden = false;
    for (const row of this.all()) if (!values(row).some(Boolean)) row.remove();
    this.addEventListener("click", (event) => this.clicked(event));
    this.addEventListener("input", () => this.draw());
    this.addEventListener("focusin", () => this.draw());
    this.svg.addEventListener("pointerdown", (event) => this.grab(event));
    this.svg.addEventListener("dragstart", (event) => event.preventDefault());
    this.draw();
  }

  all() { return [...this.rows.querySelectorAll("[data-box]")]; }
  get size() { return [Number(this.svg.dataset.width), Number(this.svg.dataset.height)]; }

  clicked(event) {
    if (event.target.closest("[data-add]")) this.add()?.querySelector("input").focus();
    const remove = event.target.closest("[data-remove]");
    if (remove) this.remove_(remove.closest("[data-box]"));
    const preview = event.target.closest("[data-preview]");
    if (preview) preview.setAttribute("aria-pressed", String(this.classList.toggle("previewing")));
  }

  add() {
    if (this.all().length >= Number(this.rows.dataset.most)) {
      this.said.textContent = `${this.rows.dataset.most} boxes are the limit.`;
      return null;
    }
    const row = this.querySelector("template").content.firstElementChild.cloneNode(true);
    row.querySelector("[data-remove]").hidden = false;
    this.rows.append(row);
    this.draw();
    this.said.textContent = `Box ${this.all().length} added`;
    return row;
  }

  remove_(row) {
    const number = this.all().indexOf(row) + 1;
    row.remove();
    this.draw();
    this.said.textContent = `Box ${number} removed`;
    this.querySelector("[data-add]").focus();
  }

  // --- drawing and moving with the mouse ------------------------------------------------------------------------------

  grab(event) {
    if (event.button || event.pointerType === "touch") return; // a finger scrolls
    event.preventDefault();
    const held = event.target.dataset.row;
    const row = held === undefined ? this.add() : this.all()[Number(held)];
    if (!row) return;
    const from = this.at(event);
    const start = held === undefined ? null : values(row);
    const move = (moved) => this.change(row, start, from, this.at(moved));
    const end = () => {
      this.svg.removeEventListener("pointermove", move);
      for (const kind of ["pointerup", "pointercancel"]) this.svg.removeEventListener(kind, end);
      const drawn = values(row);
      if (drawn[2] < SMALLEST || drawn[3] < SMALLEST) this.remove_(row);
      else row.querySelector("input").focus({ preventScroll: true });
    };
    this.svg.setPointerCapture(event.pointerId);
    this.svg.addEventListener("pointermove", move);
    for (const kind of ["pointerup", "pointercancel"]) this.svg.addEventListener(kind, end);
  }

  // A box that is moved keeps its size within the picture; one that is drawn spans the two points.
  change(row, start, from, to) {
    const [width, height] = this.size;
    if (start) {
      const [x, y, wide, high] = start;
      write(row, [between(x + to.x - from.x, width - wide), between(y + to.y - from.y, height - high), wide, high]);
    } else {
      const [left, top] = [Math.min(from.x, to.x), Math.min(from.y, to.y)];
      write(row, [left, top, Math.abs(to.x - from.x), Math.abs(to.y - from.y)]);
    }
    this.draw();
  }

  // The point of the picture below the mouse, in whole pixels of it.
  at(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const [width, height] = this.size;
    return { x: between(Math.round(point.x), width), y: between(Math.round(point.y), height) };
  }

  // --- showing --------------------------------------------------------------------------------------------------------

  draw() {
    const [width, height] = this.size;
    const shapes = this.all().map((row, index) => {
      for (const number of row.querySelectorAll("[data-number]")) number.textContent = index + 1;
      const [x, y, wide, high] = values(row);
      const typed = values(row).some(Boolean);
      const inside = wide > 0 && high > 0 && x >= 0 && y >= 0 && x + wide <= width && y + high <= height;
      row.classList.toggle("wrong", typed && !inside && !row.contains(document.activeElement));
      return inside ? this.shape(index, values(row), row.contains(document.activeElement)) : null;
    });
    this.layer.replaceChildren(...shapes.filter(Boolean));
  }

  shape(index, box, chosen) {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    SIDES.forEach((side, place) => rect.setAttribute(side, box[place]));
    rect.dataset.row = index;
    rect.classList.toggle("chosen", chosen);
    return rect;
  }
}

function values(row) {
  return SIDES.map((side) => {
    const text = row.querySelector(`[name=${side}]`).value.trim();
    return text === "" ? 0 : Number(text); // what is no number is NaN, and lies inside of nothing
  });
}

function write(row, box) {
  SIDES.forEach((side, place) => { row.querySelector(`[name=${side}]`).value = box[place]; });
}

function between(value, most) { return Math.min(Math.max(value, 0), most); }

customElements.define("redaction-editor", RedactionEditor);
