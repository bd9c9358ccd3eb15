// What is done with the picture of a step: zoom and pan, the click mark, what changed, and blinking with the one before.

const SVG = "http://www.w3.org/2000/svg";
const LEAST = 0.1;
const MOST = 8;
const BEAT = 700; // ms; far from what could hurt anybody
const BESIDE = 6; // pixels between a change and its outline
const DISPLAYED = 1600; // pixels of width that the picture for the screen has at most

export class Picture {
  // ``before`` gives the document of the step before, or null; ``say`` tells the reader of the screen.
  constructor(shot, before, say) {
    this.shot = shot;
    this.before = before;
    this.say = say;
    this.scale = null; // CSS pixels for a pixel of the picture; null fits
    this.outlined = false;
    this.boxes = null;
    this.timer = null;
    this.marks = remembered("marks", true);
    this.shot.classList.toggle("unmarked", !this.marks);
    shot.addEventListener("scroll", () => this.pointOut(), { passive: true });
    addEventListener("resize", () => this.pointOut());
    shot.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    shot.addEventListener("pointerdown", (event) => this.grabbed(event));
    shot.addEventListener("touchstart", (event) => this.pinched(event), { passive: false });
    shot.addEventListener("touchmove", (event) => this.pinched(event), { passive: false });
    shot.addEventListener("touchend", () => { this.pinch = null; });
    this.buttons();
    this.pointOut();
  }

  get stage() { return this.shot.closest(".stage"); }
  get svg() { return this.shot.querySelector("svg"); }
  get width() { return this.svg?.viewBox.baseVal.width ?? 0; }
  get height() { return this.svg?.viewBox.baseVal.height ?? 0; }

  // The screenshot of another step, at the scale of the one before; ``place`` then restores the scroll position.
  show(content, tall) {
    this.stop();
    this.left = [this.shot.scrollLeft, this.shot.scrollTop];
    this.stage.classList.toggle("tall", tall);
    this.shot.replaceChildren(...content.cloneNode(true).childNodes);
    this.shot.setAttribute("aria-label", content.getAttribute("aria-label"));
    this.boxes = this.framed = null;
    this.apply();
  }

  place() {
    this.shot.scrollTo(...this.left);
    this.pointOut();
  }

  // --- zoom and pan -----------------------------------------------------------------------------------------------

  fitted() {
    const across = this.shot.clientWidth / this.width;
    return this.stage.classList.contains("tall") ? across : Math.min(across, this.shot.clientHeight / this.height);
  }

  toggle() { this.zoomTo(this.scale === null ? 1 : null); }
  fit() { this.zoomTo(null); }
  by(factor) { this.zoomTo((this.scale ?? this.fitted()) * factor); }

  // The point of the picture at (x, y), by default the middle, stays where it is.
  zoomTo(scale, x, y) {
    if (!this.svg) return;
    const frame = this.shot.getBoundingClientRect();
    const [atX, atY] = [x ?? frame.left + frame.width / 2, y ?? frame.top + frame.height / 2];
    const point = new DOMPoint(atX, atY).matrixTransform(this.svg.getScreenCTM().inverse());
    this.scale = scale === null ? null : Math.min(Math.max(scale, LEAST), MOST);
    this.apply();
    const now = point.matrixTransform(this.svg.getScreenCTM());
    this.shot.scrollBy(now.x - atX, now.y - atY);
    this.pointOut();
    this.say(this.scale === null ? "The screenshot fits" : `${this.percent()}`);
  }

  percent() { return `${Math.round(this.scale * 100)}%`; }

  apply() {
    this.shot.classList.toggle("scaled", this.scale !== null);
    if (this.svg) {
      this.svg.style.width = this.scale === null ? "" : `${this.width * this.scale}px`;
      this.svg.style.height = this.scale === null ? "" : `${this.height * this.scale}px`;
      this.sharpen();
      this.frame();
    }
    this.buttons();
  }

  // The picture for the screen has fewer pixels than a very wide original; that one is shown once it is decoded.
  sharpen() {
    const [svg, image] = [this.svg, this.svg.querySelector("image")];
    if (this.scale === null || this.width <= DISPLAYED || this.width * this.scale <= DISPLAYED) return;
    const full = new Image();
    full.src = svg.dataset.full;
    full.decode().then(() => { if (svg.isConnected) image.setAttribute("href", full.src); }, () => {});
  }

  wheeled(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.zoomTo((this.scale ?? this.fitted()) * Math.exp(-event.deltaY / 400), event.clientX, event.clientY);
  }

  grabbed(event) {
    if (event.pointerType !== "mouse" || event.button || !this.svg) return;
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = this.shot;
    if (scrollWidth <= clientWidth && scrollHeight <= clientHeight) return;
    // The bars of scrolling are outside of the picture's box, and the browser's own.
    const frame = this.shot.getBoundingClientRect();
    if (event.clientX - frame.left > clientWidth || event.clientY - frame.top > clientHeight) return;
    const from = { x: event.clientX + this.shot.scrollLeft, y: event.clientY + this.shot.scrollTop };
    const drag = (move) => this.shot.scrollTo(from.x - move.clientX, from.y - move.clientY);
    const drop = () => {
      this.shot.classList.remove("held");
      this.shot.removeEventListener("pointermove", drag);
    };
    this.shot.setPointerCapture(event.pointerId);
    this.shot.classList.add("held");
    this.shot.addEventListener("pointermove", drag);
    for (const end of ["pointerup", "pointercancel"]) this.shot.addEventListener(end, drop, { once: true });
  }

  // Two fingers zoom; one scrolls, which the browser does.
  pinched(event) {
    if (event.touches.length !== 2 || !this.svg) return;
    event.preventDefault();
    const [one, two] = event.touches;
    const apart = Math.hypot(one.clientX - two.clientX, one.clientY - two.clientY);
    this.pinch ??= { apart, scale: this.scale ?? this.fitted() };
    const [x, y] = [(one.clientX + two.clientX) / 2, (one.clientY + two.clientY) / 2];
    this.zoomTo((this.pinch.scale * apart) / this.pinch.apart, x, y);
  }

  // --- marks and changes --------------------------------------------------------------------------------------------

  toggleMarks() {
    this.marks = !this.marks;
    remember("marks", this.marks);
    this.shot.classList.toggle("unmarked", !this.marks);
    this.pointOut();
    this.say(this.marks ? "Marks shown" : "Marks hidden");
    this.buttons();
  }

  // A click mark that is scrolled out of sight: an arrow says where it is.
  pointOut() {
    const away = this.away();
    this.pill?.remove();
    this.ruler?.remove();
    this.pill = this.ruler = null;
    if (!away) return;
    this.pill = document.createElement("button");
    this.pill.type = "button";
    this.pill.className = "away";
    this.pill.dataset.press = "C";
    this.pill.textContent = `${away} `;
    const key = document.createElement("kbd");
    key.textContent = "Shift C";
    this.pill.append(key);
    this.shot.after(this.pill);
    if (this.shot.scrollHeight > this.shot.clientHeight + 1) this.measure();
  }

  // A ruler at the edge stands for the whole height: the part in view, and a mark where the click is.
  measure() {
    const { scrollTop, scrollHeight, clientHeight, clientWidth, offsetTop, offsetLeft } = this.shot;
    const ring = this.svg.querySelector(".mark .ring").getBoundingClientRect();
    const click = ring.top + ring.height / 2 - this.shot.getBoundingClientRect().top + scrollTop;
    const per = (part) => `${(100 * part) / scrollHeight}%`;
    const [view, mark] = [document.createElement("i"), document.createElement("b")];
    Object.assign(view.style, { top: per(scrollTop), height: per(clientHeight) });
    mark.style.top = per(click);
    this.ruler = Object.assign(document.createElement("div"), { className: "ruler", ariaHidden: "true" });
    Object.assign(this.ruler.style, { top: `${offsetTop + 8}px`, height: `${clientHeight - 16}px`, left: `${offsetLeft + clientWidth - 20}px` });
    this.ruler.append(view, mark);
    this.shot.after(this.ruler);
  }

  away() {
    const ring = this.svg?.querySelector(".mark .ring");
    if (!ring || !this.marks) return "";
    const [mark, frame] = [ring.getBoundingClientRect(), this.shot.getBoundingClientRect()];
    const size = this.svg.getBoundingClientRect().width / this.width || 1;
    const pixels = (css) => `${Math.round(css / size).toLocaleString("en")} px`;
    const [x, y] = [mark.left + mark.width / 2, mark.top + mark.height / 2];
    if (y > frame.bottom) return `↓ the click is ${pixels(y - frame.bottom)} further down`;
    if (y < frame.top) return `↑ the click is ${pixels(frame.top - y)} further up`;
    if (x > frame.right) return `→ the click is ${pixels(x - frame.right)} further right`;
    return x < frame.left ? `← the click is ${pixels(frame.left - x)} further left` : "";
  }

  toMark() {
    const ring = this.svg?.querySelector(".mark .ring");
    if (!ring) return this.say("This step has no click mark");
    if (!this.marks) this.toggleMarks();
    const [mark, frame] = [ring.getBoundingClientRect(), this.shot.getBoundingClientRect()];
    this.shot.scrollBy(mark.left + mark.width / 2 - frame.left - frame.width / 2, mark.top + mark.height / 2 - frame.top - frame.height / 2);
    return this.say("The click is in view");
  }

  toggleOutlines() {
    this.outlined = !this.outlined;
    this.outline();
    this.buttons();
    return this.outlined;
  }

  // ``change`` is {boxes, share}, or null where there is nothing to compare.
  changed(change) {
    this.boxes = change?.boxes ?? null;
    this.outline();
  }

  outline() {
    this.svg?.querySelector(".changes")?.remove();
    if (!this.outlined || !this.boxes?.length || !this.svg) return;
    const group = drawn("g", { class: "changes" });
    for (const [x, y, width, height] of this.boxes) {
      // Beside what changed, not across it; at the edge of the picture, on it.
      const [left, top] = [Math.max(x - BESIDE, 0), Math.max(y - BESIDE, 0)];
      const right = Math.min(x + width + BESIDE, this.width);
      const bottom = Math.min(y + height + BESIDE, this.height);
      const sides = { x: left, y: top, width: right - left, height: bottom - top };
      for (const kind of ["under", "over"]) group.append(drawn("rect", { class: kind, ...sides }));
    }
    this.svg.append(group);
  }

  // Boxes of people: {box: [x, y, width, height], name, kind}, in pixels of the picture. Their names keep one size.
  frame(boxes = this.framed) {
    this.framed = boxes;
    this.svg?.querySelector(".boxes")?.remove();
    if (!this.svg || !boxes?.length) return;
    const pixel = this.width / this.svg.getBoundingClientRect().width || 1;
    const group = drawn("g", { class: "boxes" });
    for (const { box: [x, y, width, height], name, kind } of boxes) {
      const one = drawn("g", { class: kind });
      for (const place of ["under", "over"]) one.append(drawn("rect", { class: place, x, y, width, height }));
      const above = y > 20 * pixel;
      const place = { x: x + 2 * pixel, y: above ? y - 5 * pixel : y + height + 14 * pixel, "font-size": 13 * pixel };
      const text = drawn("text", place);
      text.textContent = name;
      one.append(text);
      group.append(one);
    }
    this.svg.append(group);
  }

  // --- blinking -----------------------------------------------------------------------------------------------------

  // Each press swaps for people who want no motion; for others the pictures take turns until the next press.
  async blink() {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (this.earlier && !still) return this.stop();
    if (this.earlier) return this.swap();
    const svg = this.svg;
    const there = (await this.before())?.querySelector(".shot svg");
    if (!there || !svg || svg !== this.svg) return this.say("There is no previous screenshot to compare with");
    const image = there.querySelector("image");
    const [width, height] = ["width", "height"].map((side) => image.getAttribute(side));
    this.earlier = drawn("g", { class: "earlier" });
    this.earlier.append(drawn("rect", { width: this.width, height: this.height }));
    this.earlier.append(drawn("image", { href: image.getAttribute("href"), width, height }));
    svg.querySelector("image").after(this.earlier);
    this.stage.dataset.shows = "before";
    this.say("Previous screenshot shown");
    if (!still) this.timer = setInterval(() => this.swap(), BEAT);
    this.buttons();
  }

  swap() {
    const hidden = this.earlier.classList.toggle("off");
    this.stage.dataset.shows = hidden ? "now" : "before";
    if (!this.timer) this.say(hidden ? "Screenshot of this step shown" : "Previous screenshot shown");
  }

  stop() {
    clearInterval(this.timer);
    this.earlier?.remove();
    this.earlier = this.timer = null;
    delete this.stage.dataset.shows;
    this.buttons();
  }

  buttons() {
    const states = { c: this.marks, d: this.outlined, b: Boolean(this.earlier) };
    for (const [key, on] of Object.entries(states)) {
      document.querySelector(`[data-press="${key}"]`)?.setAttribute("aria-pressed", String(on));
    }
    const size = document.querySelector("[data-scale]");
    if (size) size.textContent = this.scale === null ? "fit" : this.percent();
  }
}

export function remembered(name, usual) {
  try {
    return JSON.parse(localStorage.getItem(`viewer-${name}`)) ?? usual;
  } catch {
    return usual;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`viewer-${name}`, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing: it holds until the page is left.
  }
}

export function drawn(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
