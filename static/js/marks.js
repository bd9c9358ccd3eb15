// Marks on steps as the form has them: the text "4 wrong, 7 side effect", and Map {4: "wrong", 7: "side effect"}.

export function read(text) {
  const found = [...text.matchAll(/(\d+)[\s:]+([^,;\n]+)/g)];
  return new Map(found.map(([, step, mark]) => [Number(step), mark.trim().toLowerCase().replaceAll("_", " ")]));
}

// Returns the text with another mark on a step; "right" takes the mark away.
export function change(text, step, mark) {
  const all = read(text).set(step, mark);
  if (mark === "right") all.delete(step);
  return [...all].sort(([one], [other]) => one - other).map((pair) => pair.join(" ")).join(", ");
}
