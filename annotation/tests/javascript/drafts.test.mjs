import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import { Drafts } from "../../../static/js/drafts.js";

const PLACE = "/trajectories/1/submit";
let drafts, removed, compared, said, changed;

// A page that shows `there` at `version`, in a browser whose newest copy is `kept`.
function open(there, version, kept) {
  const elements = Object.assign([{ name: "reasoning", value: there }], { version: { value: String(version) } });
  drafts.form = { elements, action: `http://desk.example${PLACE}`, dispatchEvent() {} };
  drafts.copy = { key: "of this window", newest: () => kept && { key: "of another", place: PLACE, at: 0, ...kept }, remove: (key) => removed.push(key) };
  drafts.restore();
  return drafts.form.elements[0].value;
}

const text = (reasoning) => ({ reasoning });

beforeEach(() => {
  [removed, compared, said, changed] = [[], [], [], 0];
  // Without its constructor, which needs a whole page.
  drafts = Object.create(Drafts.prototype);
  drafts.saving = { unanswered: [], changed: () => { changed += 1; } };
  drafts.say = (words) => said.push(words);
  drafts.compare = (page, kept) => compared.push([page.there.reasoning, kept.fields.reasoning]);
});

describe("what an earlier page left in the browser", () => {
  it("changes nothing if there is none", () => {
    assert.equal(open("here", 1, undefined), "here");
    assert.deepEqual([removed, compared, changed], [[], [], 0]);
  });

  it("is removed if the page shows the same text, or a later save", () => {
    open("same", 1, { fields: text("same"), version: 1 });
    open("newer", 2, { fields: text("older"), version: 1, saved: true });
    assert.deepEqual([removed, compared, changed], [["of another", "of another"], [], 0]);
  });

  it("is restored if nobody saved since, and saved again", () => {
    assert.equal(open("half", 1, { fields: text("half a thought"), version: 1 }), "half a thought");
    assert.match(said[0], /^Restored unsaved text/);
    assert.deepEqual([removed, compared, changed], [["of another"], [], 1]);
    assert.deepEqual(drafts.saving.unanswered, [text("half a thought")]);
  });

  it("is restored if the server has only got this window's last save", () => {
    assert.equal(open("half", 2, { fields: text("half a thought"), version: 1, sent: text("half") }), "half a thought");
    assert.equal(drafts.version, 2);
    assert.deepEqual(drafts.saving.unanswered, [text("half a thought"), text("half")]);
  });

  it("keeps the version of a save that this page does not show yet", () => {
    open("half", 1, { fields: text("half a thought"), version: 3, saved: true });
    assert.deepEqual([drafts.version, said], [3, []]);
  });

  it("is compared if somebody else has saved since, or if it belongs to another form", () => {
    assert.equal(open("theirs", 2, { fields: text("mine"), version: 1 }), "theirs");
    assert.equal(open("theirs", 1, { fields: text("mine"), version: 1, place: "/trajectories/1/revise" }), "theirs");
    assert.deepEqual(compared, [["theirs", "mine"], ["theirs", "mine"]]);
    assert.deepEqual([removed, changed], [[], 0]);
  });
});
