// Steps of two agents: links and keys change both sides without loading the page again.

import { PATIENCE } from "./session.js";

const KEYS = {
  j: "next", ArrowRight: "next", k: "previous", ArrowLeft: "previous", Home: "first", End: "last", x: "parting",
  q: "left-previous", w: "left-next", o: "right-previous", p: "right-next",
};
const pages = new Map();
let wanted = null;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable]")) return;
  const link = Object.hasOwn(KEYS, event.key) && find(KEYS[event.key]);
  if (!link) return;
  event.preventDefault();
  // A held key shows every step: its repeats are ignored while a step is loading.
  if (event.repeat && wanted) return;
  go(link);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-move]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link);
});

function find(name) { return document.querySelector(`a[data-move="${name}"]`); }

async function go(link) {
  const address = wanted = link.href;
  try {
    const page = await load(address);
    if (wanted === address) show(page, address);
  } catch {
    // Whatever is wrong, the server explains it on a page.
    if (wanted === address) location.assign(address);
  }
}

function load(address) {
  if (!pages.has(address)) {
    if (pages.size > 30) pages.clear();
    const loading = fetched(address);
    loading.catch(() => pages.delete(address));
    pages.set(address, loading);
  }
  return pages.get(address);
}

async function fetched(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(PATIENCE) });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!answer.ok || answer.redirected || !page.getElementById("pair")) throw new Error("This is not the page.");
  return page;
}

function show(page, address) {
  wanted = null;
  const focused = selectorOf(document.activeElement);
  const tall = [...document.querySelectorAll(".shot-of")].map((shot) => shot.scrollTop);
  const open = [...document.querySelectorAll("#pair details[open]")].map((details) => details.id);
  document.getElementById("pair").replaceWith(document.importNode(page.getElementById("pair"), true));
  document.querySelectorAll(".shot-of").forEach((shot, number) => { shot.scrollTop = tall[number] ?? 0; });
  centre();
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) (document.querySelector(focused) ?? find("first"))?.focus({ preventScroll: true });
  history.replaceState(null, "", address);
  document.getElementById("said").textContent = [...document.querySelectorAll(".side-of")]
    .map((side) => `${side.querySelector("h2 bdi").textContent}: ${side.querySelector(".at-step > b").textContent.trim()}`)
    .join(", ");
  lookAhead();
}

// A selector of the same element in the next page.
function selectorOf(element) {
  if (!element?.closest("#pair")) return "";
  if (element.dataset.move) return `a[data-move="${element.dataset.move}"]`;
  return element.id && `#${element.id}`;
}

// On a phone a strip scrolls sideways.
function centre() {
  for (const tile of document.querySelectorAll(".tiles-of [aria-current]")) {
    const strip = tile.closest(".tiles-of"), [at, all] = [tile, strip].map((each) => each.getBoundingClientRect());
    strip.scrollLeft += at.left + at.width / 2 - all.left - all.width / 2;
  }
}

// The next step of both, with its pictures.
function lookAhead() {
  const link = find("next");
  if (!link) return;
  load(link.href).then((page) => {
    for (const picture of page.querySelectorAll(".shot-of image")) new Image().src = picture.getAttribute("href");
  }).catch(() => {});
}

centre();
lookAhead();
