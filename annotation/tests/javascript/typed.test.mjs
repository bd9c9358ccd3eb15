import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import { Copy, copiesOf, different, fill, hasArrived, typed } from "../../../static/js/typed.js";

const field = (name, value, more = {}) => ({ name, value, type: "text", dispatchEvent() {}, ...more });
const form = (...elements) => ({ elements, dispatchEvent() {} });

describe("the fields of a form", () => {
  it("are what is filled in and chosen, as the server keeps it", () => {
    const made = form(
      field("csrfmiddlewaretoken", "secret"), field("version", "3"), field("reasoning", "one\r\ntwo"), field("cause", ""),
      field("verdict", "0", { type: "radio" }), field("verdict", "1", { type: "radio", checked: true }),
      field("types", "a", { type: "checkbox", checked: true }), field("types", "b", { type: "checkbox", checked: true }),
    );
    assert.deepEqual(typed(made), { reasoning: "one\ntwo", verdict: "1", types: "a b" });
  });

  it("are filled in again as they were", () => {
    const [failure, success] = ["0", "1"].map((value) => field("verdict", value, { type: "radio", checked: value === "0" }));
    const made = form(field("reasoning", "new"), failure, success, field("types", "b", { type: "checkbox", checked: true }));
    fill(made, { reasoning: "old", verdict: "1", types: "a c" });
    assert.deepEqual(typed(made), { reasoning: "old", verdict: "1" });
  });

  it("differ by their words and not by line ends, and an empty one is none", () => {
    assert.deepEqual(different({ a: "1\r\n2", b: "", c: "x" }, { a: "1\n2", d: "y" }), ["c", "d"]);
  });
});

describe("the copy in the browser", () => {
  beforeEach(() => {
    // Object.keys(localStorage) are the keys: as in a browser, the methods are not among them.
    globalThis.localStorage = Object.create({
      getItem(key) { return this[key] ?? null; },
      setItem(key, value) { this[key] = value; },
      removeItem(key) { delete this[key]; },
    });
  });

  it("is the newest of its person and trajectory, whatever else is stored", () => {
    const copy = new Copy(1, 7);
    localStorage.setItem("webverdict-typed:1:7:gone", JSON.stringify({ fields: { a: "older" }, at: "2020-01-01T00:00:00Z" }));
    localStorage.setItem("webverdict-typed:1:7:broken", "{");
    localStorage.setItem("webverdict-typed:2:7:other", JSON.stringify({ fields: { a: "another's" }, at: "2099-01-01T00:00:00Z" }));
    assert.deepEqual(copy.newest().fields, { a: "older" });
    assert.equal(copy.write({ fields: { a: "newer" } }), true);
    assert.deepEqual(copy.newest().fields, { a: "newer" });
    assert.equal(copiesOf(1).length, 3);
    copy.removeAll();
    assert.equal(copy.newest(), null);
    assert.equal(copiesOf(2).length, 1);
  });

  it("says when the browser does not take it", () => {
    localStorage.setItem = () => { throw new Error("QuotaExceededError"); };
    assert.equal(new Copy(1, 7).write({ fields: {} }), false);
    globalThis.localStorage = undefined;
    assert.equal(new Copy(1, 7).newest(), null);
  });
});

describe("what was submitted", () => {
  const copy = { fields: { text: "checks:\r\n  - name: one", why: "Asked for." }, sent: "keep" };

  it("has arrived when the server shows the same text", () => {
    assert.equal(hasArrived(copy, "checks:\n  - name: one\n"), true);
    assert.equal(hasArrived({ ...copy, sent: "withdraw" }, ""), true);
  });

  it("has not arrived when the server shows another text, or when it was only typed", () => {
    for (const text of ["checks: []\n", ""]) assert.equal(hasArrived(copy, text), false);
    assert.equal(hasArrived({ ...copy, sent: "withdraw" }, "checks: []\n"), false);
    assert.equal(hasArrived({ fields: copy.fields }, "checks:\n  - name: one\n"), false);
  });
});
