// Walking through the steps: the next ones are fetched before they are asked for, and shown without a blank moment.

import { Picture, remember, remembered } from "./picture.js";
import { PATIENCE } from "./session.js";

const AHEAD = { atFirst: [1], after: [1, 2, -1], held: [1, 2, 3, 4, 5, 6, 7, 8] }; // nobody may want more than the first look
const NOTED = 100; // milliseconds that a step is shown before the address names it
const MESSAGE = 6000; // milliseconds that it stays
const PAGES = 30; // steps that stay in memory
const BLOCKS = 6; // and blocks of changes
const COMPARED = 60; // steps whose changes are asked for at once

export class Viewer {
  constructor() {
    this.pages = new Recent(PAGES);
    this.changes = new Recent(BLOCKS);
    this.wanted = this.index;
    this.seen = new Set(numbers(this.strip.dataset.seen));
    this.picture = new Picture(document.querySelector(".shot"), () => this.before(), announce);
    this.folded = remembered("folded", false);
    document.addEventListener("click", (event) => this.clicked(event));
    // A button of the bar must not take the focus from where somebody works: Space would press it again.
    document.addEventListener("mousedown", (event) => {
      if (event.target.closest("[data-press], [data-fold]")) event.preventDefault();
    });
    this.fold();
    this.markCurrent();
    this.lookAhead(AHEAD.atFirst);
    const wide = matchMedia("(min-width: 2000px)");
    const beside = () => { if (wide.matches) ready(() => this.readAll(true).then(() => this.widen())); };
    wide.addEventListener("change", beside);
    beside();
    ready(() => this.shown(this.index));
  }

  get keys() {
    return {
      ArrowRight: (event) => this.move(1, event),
      j: (event) => this.move(1, event),
      ArrowLeft: (event) => this.move(-1, event),
      k: (event) => this.move(-1, event),
      Home: () => this.go(0),
      End: () => this.go(this.last),
      " ": () => this.toUnseen(),
      e: () => this.toFailed(),
      v: () => this.toChanged(),
      z: () => this.picture.toggle(),
      "+": () => this.picture.by(1.25),
      "=": () => this.picture.by(1.25),
      "-": () => this.picture.by(0.8),
      0: () => this.picture.fit(),
      c: () => this.picture.toggleMarks(),
      C: () => this.picture.toMark(),
      t: () => this.readAll(),
      d: () => this.toggleOutlines(),
      b: () => this.picture.blink(),
      "/": () => this.find(),
      o: () => document.querySelector("[data-original]:not([hidden])")?.click(),
    };
  }

  get stage() { return document.getElementById("stage"); }
  get strip() { return document.getElementById("strip"); }
  get address() { return this.stage.dataset.address; }
  get index() { return Number(this.stage.dataset.index); }
  get last() { return Number(this.stage.dataset.last); }

  clicked(event) {
    const more = document.querySelector(".extra[open]");
    if (more && (!more.contains(event.target) || event.target.closest("a, button"))) more.open = false;
    const search = event.target.closest("[data-search]");
    if (search && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault();
      return this.find();
    }
    if (event.target.closest("[data-transcript]:not(.stage)") && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault();
      return this.readAll();
    }
    const press = event.target.closest("[data-press]");
    if (press) return this.keys[press.dataset.press]();
    if (event.target.closest("[data-fold]")) return this.fold(!this.folded);
    const link = event.target.closest("a[data-step]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.go(Number(link.dataset.step));
  }

  // All steps in one list, over the picture or, on a wide screen, beside it.
  async readAll(show) {
    this.transcript ??= import("./transcript.js").then(
      ({ Transcript }) => new Transcript(this, announce, showMessage, fetched),
      () => {
        this.transcript = null;
        throw new Error("The server cannot be reached; the transcript is not shown.");
      },
    );
    await this.transcript.then((transcript) => transcript.toggle(show)).catch((problem) => showMessage(problem.message));
  }

  // Extra help on wide screens; the desk works without it if it cannot be loaded.
  widen() {
    this.wide ??= import("./wide.js").then(({ Wide }) => new Wide(this), () => { this.wide = null; });
  }

  async find() {
    this.search ??= import("./search.js").then(({ Search }) => new Search((index) => this.go(index)));
    try {
      (await this.search).open();
    } catch {
      this.search = null;
      showMessage("The server cannot be reached");
    }
  }

  // A key that is held shows every step it passes: it waits for the one that is on its way.
  move(by, event) {
    if (!event?.repeat) return this.go(this.wanted + by);
    this.lookAhead(AHEAD.held.map((steps) => steps * by));
    return this.painted && this.wanted === this.index && this.go(this.wanted + by);
  }

  // ``going`` ends when the step is shown, or another one is wanted, or it cannot be loaded.
  go(to) {
    this.wanted = Math.min(Math.max(to, 0), this.last);
    this.going = this.bring(this.wanted);
    return this.going;
  }

  async bring(index) {
    try {
      const page = await this.page(index);
      if (this.wanted === index) this.show(page, index);
    } catch (problem) {
      if (this.wanted !== index) return;
      this.wanted = this.index;
      showMessage(problem.message);
    }
  }

  page(index) { return this.pages.recall(index, () => this.load(index)); }

  async load(index) {
    const page = await fetched(`${this.address}step=${index}&bare`, "step");
    const picture = page.querySelector("#stage image");
    if (picture) await settled(picture.getAttribute("href"));
    return page;
  }

  before() { return this.index > 0 ? this.page(this.index - 1).catch(() => null) : null; }

  // --- showing a step -----------------------------------------------------------------------------------------------

  // Read the layout before changing the page, so that the browser computes it once for each step.
  show(page, index) {
    const kept = focused();
    const there = page.getElementById("stage");
    this.stage.dataset.index = index;
    this.markCurrent();
    this.picture.show(there.querySelector(".shot"), there.classList.contains("tall"));
    for (const part of [".where", "#step"]) {
      document.querySelector(part).replaceWith(page.querySelector(part).cloneNode(true));
    }
    this.linkOriginal();
    this.markTask();
    announce(this.spoken(index));
    this.shown(index);
    this.picture.place();
    focusAgain(kept, this.thumb(index));
    this.noteAddress();
    this.lookAhead();
  }

  // After the picture is painted: Chromium loads the icon of the page again for each address, which takes 5 ms.
  noteAddress() {
    this.noting ??= setTimeout(() => {
      this.noting = null;
      history.replaceState(null, "", `${this.address}step=${this.index}`);
    }, NOTED);
  }

  // The step is on the screen: it counts as seen, and others are told.
  shown(index) {
    this.painted = false;
    requestAnimationFrame(() => { this.painted = true; });
    this.seen.add(index);
    mark(this.thumb(index));
    const count = document.querySelector("[data-unseen]");
    if (count) count.textContent = this.last + 1 - this.seen.size || "";
    if (this.picture.outlined) this.compare(index);
    document.dispatchEvent(new CustomEvent("step", { detail: { index } }));
  }

  // Words of the task that occur at this step.
  markTask() {
    const here = new Set(document.getElementById("step").dataset.terms.split(" "));
    document.querySelectorAll(".task mark").forEach((mark) => mark.classList.toggle("in", here.has(mark.dataset.term)));
  }

  spoken(index) {
    const said = [...document.querySelectorAll("#step .said .chip")].map((chip) => chip.textContent.replace(/^✕\s+/, ""));
    return [`Step ${index} of ${this.last}`, ...said].join(", ");
  }

  linkOriginal() {
    const [link, svg] = [document.querySelector("[data-original]"), this.picture.svg];
    link.hidden = !svg;
    if (svg) link.href = svg.dataset.full;
  }

  lookAhead(steps = AHEAD.after) {
    for (const by of steps) {
      const index = this.index + by;
      if (index >= 0 && index <= this.last) this.page(index).catch(() => {});
    }
  }

  // --- the strip ----------------------------------------------------------------------------------------------------

  thumb(index) { return document.querySelector(`#strip .thumb[data-step="${index}"]`); }

  markCurrent() {
    const thumb = this.thumb(this.index);
    const centre = () => {
      if (thumb) this.strip.scrollLeft = thumb.offsetLeft - (this.strip.clientWidth - thumb.clientWidth) / 2;
    };
    if (!this.folded) centre();
    this.strip.querySelectorAll(".thumb[aria-current]").forEach((other) => other.removeAttribute("aria-current"));
    thumb?.setAttribute("aria-current", "step");
    if (this.folded) centre(); // a repeated step is hidden until it is the current one
    const near = [this.index - 6, this.index + 6].map((n) => Math.min(Math.max(n, 0), this.last));
    if (!near.every((index) => this.thumb(index))) this.moveStrip(this.index);
  }

  // Another part of a long trajectory, fetched when the strip is about to end.
  async moveStrip(index) {
    if (this.moving === index) return;
    this.moving = index;
    const page = await fetched(`${this.address}step=${index}`, "step").catch(() => null);
    if (this.moving !== index) return;
    this.moving = null;
    if (!page) return;
    const kept = focused();
    this.strip.replaceWith(page.getElementById("strip"));
    this.seen.forEach((seen) => mark(this.thumb(seen)));
    this.fold();
    this.markCurrent();
    focusAgain(kept, this.thumb(this.index));
    document.dispatchEvent(new CustomEvent("strip"));
  }

  fold(folded = this.folded) {
    if (folded !== this.folded) remember("folded", folded);
    this.folded = folded;
    this.strip.classList.toggle("folded", folded);
    this.strip.querySelector("[data-fold]")?.setAttribute("aria-pressed", String(folded));
    this.markCurrent();
  }

  // --- where next ---------------------------------------------------------------------------------------------------

  toUnseen() {
    const next = this.after(this.wanted, (index) => !this.seen.has(index) && index !== this.wanted);
    if (next === null) showMessage("All steps are opened");
    else this.go(next);
  }

  toFailed() {
    const failed = new Set(numbers(this.strip.dataset.failed));
    const next = this.after(this.wanted, (index) => failed.has(index));
    if (next === null) showMessage(failed.size ? "No other action failed" : "No action failed");
    else this.go(next);
  }

  async toChanged() {
    const from = this.wanted;
    for (let index = from + 1; index <= this.last; index += 1) {
      const change = await this.change(index).catch(() => undefined);
      if (this.wanted !== from) return;
      if (change === undefined) return showMessage("The changes cannot be loaded");
      if (change && change.share > this.visible) return this.go(index);
    }
    showMessage("No later screenshot has changed visibly");
  }

  // The first step behind ``from`` that ``fits``, from the last on to the first; null when none does.
  after(from, fits) {
    const count = this.last + 1;
    const order = Array.from({ length: count - 1 }, (_, n) => (from + 1 + n) % count);
    return order.find(fits) ?? null;
  }

  // --- what changed -------------------------------------------------------------------------------------------------

  async toggleOutlines() {
    const on = this.picture.toggleOutlines();
    if (!on) return announce("Changes not outlined");
    const change = await this.change(this.index).catch(() => null);
    this.picture.changed(change);
    if (!change) showMessage("There is no previous screenshot to compare with");
    else showMessage(change.boxes.length ? `${share(change.share)} of the screenshot changed` : "The screenshot did not change");
  }

  // Asked for in the background, when the picture is painted, by whoever has outlines on.
  compare(index) {
    const ask = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 200));
    ask(async () => {
      const change = await this.change(index).catch(() => null);
      if (this.index === index) this.picture.changed(change);
    });
  }

  // {boxes, share} of a step, or null where nothing can be compared; fetched in blocks.
  async change(index) {
    const block = Math.floor(index / COMPARED);
    return (await this.changes.recall(block, () => this.loadChanges(block)))[index] ?? null;
  }

  async loadChanges(block) {
    const from = block * COMPARED;
    const address = `${this.stage.dataset.changes}?from=${from}&to=${from + COMPARED - 1}`;
    const answer = await fetch(address, { signal: AbortSignal.timeout(PATIENCE) });
    if (!answer.ok || answer.redirected) throw new Error("no changes");
    const { steps, visible } = await answer.json();
    this.visible = visible;
    return steps;
  }
}

// A cache of promises by key: the least recently used one is dropped, and a failed one can be loaded again.
class Recent extends Map {
  constructor(most) {
    super();
    this.most = most;
  }

  recall(key, load) {
    const value = this.get(key) ?? load();
    this.delete(key);
    this.set(key, value);
    value.catch(() => { if (this.get(key) === value) this.delete(key); });
    if (this.size > this.most) this.delete(this.keys().next().value);
    return value;
  }
}

// For screen readers: others see on the page what has happened.
export function announce(text) {
  document.getElementById("announce").textContent = text;
}

// For everybody: nothing else on the page says so.
export function showMessage(text) {
  announce(text);
  const place = document.getElementById("message");
  place.textContent = text;
  place.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { place.hidden = true; }, MESSAGE);
}
let hiding = null;

// A part of the desk from the server, as a document; an error says that the ``what`` ("step", "page") is not shown.
// Here and not in a file of its own: the first desk page has no request to spare.
export async function fetched(address, what) {
  const options = { headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(PATIENCE) };
  const answer = await fetch(address, options).catch(() => {
    throw new Error(`The server cannot be reached; the ${what} is not shown.`);
  });
  if (answer.redirected) {
    document.dispatchEvent(new CustomEvent("signed-out"));
    throw new Error("Your session has ended.");
  }
  if (!answer.ok) throw new Error(`The ${what} cannot be shown (${answer.status}).`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

const numbers = (text) => (text ? text.split(" ").map(Number) : []);
const share = (part) => (part < 0.01 ? "Less than 1%" : `${Math.round(part * 100)}%`);

function mark(thumb) {
  if (!thumb || thumb.classList.contains("seen")) return;
  thumb.classList.add("seen");
  thumb.querySelector(".sr").append(", seen");
}

// The part of the viewer that has the focus, to give it back when that part has been replaced.
function focused() {
  const element = document.activeElement;
  const part = element?.closest("#strip .thumb, #strip .jump, #step, .where");
  return { name: part?.closest("#strip") ? "strip" : part?.id || part?.className, rel: element?.rel };
}

function focusAgain({ name, rel }, thumb) {
  const again = {
    strip: () => thumb,
    step: () => document.getElementById("step"),
    where: () => document.querySelector(rel ? `.where [rel="${rel}"]` : ".where .word") ?? document.querySelector(".shot"),
  };
  again[name]?.()?.focus({ preventScroll: true });
}

// After all modules of the page have run and can listen.
function ready(act) {
  if (document.readyState === "complete") setTimeout(act);
  else document.addEventListener("DOMContentLoaded", act, { once: true });
}

// Decoded or broken, but never waited for longer than a person would notice.
function settled(address) {
  const image = new Image();
  image.src = address;
  return Promise.race([image.decode().catch(() => {}), new Promise((done) => { setTimeout(done, 400); })]);
}
