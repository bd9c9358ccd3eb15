// Drawing a box on the picture with the mouse, a finger or the keyboard. Fetched when somebody draws the first one.

import { drawn } from "./picture.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const KEYS = { Enter: "keep", Escape: "cancel", Delete: "remove", Backspace: "remove" };
const STEP = 10; // pixels of the picture for a press of an arrow key
const LEAST = 4; // pixels; a smaller box is a click

export class Drawing {
  // ``ended`` is called once: with the box to keep, null to remove it, or nothing to leave it as it was.
  constructor(picture, box, name, say, ended) {
    Object.assign(this, { picture, ended });
    this.box = box ? [...box] : this.first();
    this.drawn = false;
    this.stop = new AbortController();
    const { signal } = this.stop;
    this.bar = toolbar(name, Boolean(box));
    this.bar.addEventListener("click", (event) => this.act(event.target.closest("[data-do]")?.dataset.do), { signal });
    picture.stage.append(this.bar);
    picture.shot.classList.add("drawing");
    picture.shot.addEventListener("pointerdown", (event) => this.begin(event), { signal, capture: true });
    document.addEventListener("keydown", (event) => this.key(event), { signal, capture: true });
    // Whoever goes on without saving has drawn the box all the same.
    for (const leave of ["step", "submit"]) document.addEventListener(leave, () => this.leave(), { signal, capture: true });
    this.show();
    this.bar.focus({ preventScroll: true });
    say(`Box for ${name}: arrows move it, Shift and arrows change its size, Enter saves it`);
  }

  // Around the click, or in the middle of what is in sight.
  first() {
    const ring = this.picture.svg.querySelector(".mark .ring");
    const frame = this.picture.shot.getBoundingClientRect();
    const middle = this.at(frame.left + frame.width / 2, frame.top + frame.height / 2);
    const [x, y] = ring ? ["cx", "cy"].map((name) => Number(ring.getAttribute(name))) : middle;
    return this.inside([x - 80, y - 40, 160, 80]);
  }

  at(x, y) {
    const point = new DOMPoint(x, y).matrixTransform(this.picture.svg.getScreenCTM().inverse());
    return [point.x, point.y];
  }

  // Whole pixels of the picture, and not outside of it.
  inside([x, y, width, height]) {
    const fit = (from, size, all) => {
      const long = Math.min(Math.max(Math.round(size), LEAST), all);
      return [Math.min(Math.max(Math.round(from), 0), all - long), long];
    };
    const [left, wide] = fit(x, width, this.picture.width);
    const [top, high] = fit(y, height, this.picture.height);
    return [left, top, wide, high];
  }

  show() {
    const { svg } = this.picture;
    svg.querySelectorAll(".boxes").forEach((group) => group.remove());
    const [x, y, width, height] = this.box;
    const group = drawn("g", { class: "boxes" });
    for (const place of ["under", "over"]) group.append(drawn("rect", { class: place, x, y, width, height }));
    svg.append(group);
  }

  begin(event) {
    if (event.button || !event.target.closest("svg")) return;
    event.preventDefault();
    event.stopPropagation();
    const [fromX, fromY] = this.at(event.clientX, event.clientY);
    const before = this.box;
    const drag = (move) => {
      const [x, y] = this.at(move.clientX, move.clientY);
      const [wide, high] = [Math.abs(x - fromX), Math.abs(y - fromY)];
      if (Math.max(wide, high) >= LEAST) this.change(this.inside([Math.min(x, fromX), Math.min(y, fromY), wide, high]));
      else this.change(before, false);
    };
    const { shot } = this.picture;
    shot.setPointerCapture(event.pointerId);
    shot.addEventListener("pointermove", drag);
    const drop = () => shot.removeEventListener("pointermove", drag);
    for (const end of ["pointerup", "pointercancel"]) shot.addEventListener(end, drop, { once: true });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || ["Tab", "Shift", "B"].includes(event.key)) return;
    if (event.target.matches("input, textarea, select, [data-do]") && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    const [byX, byY] = (MOVES[event.key] ?? [0, 0]).map((one) => one * STEP);
    const [x, y, width, height] = this.box;
    if (byX || byY) {
      this.change(this.inside(event.shiftKey ? [x, y, width + byX, height + byY] : [x + byX, y + byY, width, height]));
    } else this.act(KEYS[event.key]);
  }

  change(box, drawn = true) {
    Object.assign(this, { box, drawn });
    this.show();
  }

  act(what) {
    if (what) this.finish({ keep: this.box, remove: null }[what]);
  }

  leave() { this.finish(this.drawn ? this.box : undefined); }

  finish(box) {
    this.stop.abort();
    this.bar.remove();
    this.picture.shot.classList.remove("drawing");
    this.picture.svg?.querySelector(".boxes")?.remove();
    this.ended(box);
  }
}

function toolbar(name, exists) {
  const bar = document.createElement("div");
  bar.className = "drawing-bar";
  bar.tabIndex = -1;
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", `Box for ${name}`);
  const words = document.createElement("span");
  words.textContent = `Box for ${name}: drag on the screenshot, or use the arrow keys. Hold Shift to change its size.`;
  bar.append(words, button("keep", "Save", "Enter"));
  if (exists) bar.append(button("remove", "Remove", "Del"));
  bar.append(button("cancel", "Cancel", "Esc"));
  return bar;
}

function button(what, words, key) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "small";
  made.dataset.do = what;
  const kbd = document.createElement("kbd");
  kbd.textContent = key;
  made.append(`${words} `, kbd);
  return made;
}
