// A judgment beside the viewer: what the judge said of the step that is shown, and its scores on the strip.

const stage = () => document.getElementById("stage");
const articles = [...document.querySelectorAll(".judged [data-of]")];
const nothing = document.querySelector("[data-of-none]");
const scores = new Map([...document.querySelectorAll("#scores [data-judged]")].map((row) => [Number(row.dataset.judged), row.dataset]));

function showStep() {
  const index = Number(stage().dataset.index);
  for (const article of articles) article.hidden = Number(article.dataset.of) !== index;
  if (nothing) nothing.hidden = articles.some((article) => !article.hidden);
}

// "4 ✓": relevance, and whether the picture was shown for the verdict; "= 3": the same picture as step 3.
function badge({ relevance, kept, same }) {
  const made = document.createElement("span");
  made.className = `names relevance r${relevance || "none"}`;
  made.textContent = `${relevance || (kept ? "" : "?")}${kept ? " ✓" : ""}${same ? ` = ${same}` : ""}`;
  made.title = [
    relevance ? `relevance ${relevance} of 5` : "without a score of its own",
    kept ? "shown for the verdict" : "not shown for the verdict",
    ...(same ? [`the same screenshot as step ${same}`] : []),
  ].join(", ");
  const spoken = document.createElement("span");
  spoken.className = "sr";
  spoken.textContent = ` (${made.title})`;
  made.append(spoken);
  return made;
}

function marks() {
  document.querySelectorAll("#strip .thumb").forEach((thumb) => {
    const score = scores.get(Number(thumb.dataset.step));
    thumb.querySelector(".names")?.remove();
    thumb.classList.toggle("left-out", Boolean(score) && !score.kept);
    if (score) thumb.append(badge(score));
  });
}

document.addEventListener("step", showStep);
document.addEventListener("strip", marks);
showStep();
marks();
