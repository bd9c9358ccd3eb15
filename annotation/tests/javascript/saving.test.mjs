import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";

import { Session } from "../../../static/js/session.js";
import { DELAY, PAUSES, Saving, pauseOf, read, trouble } from "../../../static/js/typed.js";
import { Clock, GOOD, LABEL, Server, page } from "./tools.mjs";

const PATIENCE = 300; // milliseconds until a request that never ends is given up; all others have as long as they need

// What Drafts is to a page, with a text instead of a form. `shown` has what the person would see, the latest last.
class Desk {
  constructor(server) {
    this.session = new Session();
    this.server = server;
    this.shown = [];
    this.text = "";
  }

  fields() { return this.text ? { reasoning: this.text } : {}; }
  keep() { this.copy = this.text; }
  post() { return this.session.fetch(`${this.server.address}/draft`, { body: () => this.text }); }
  submit() { return this.session.fetch(`${this.server.address}/submit`, { body: () => this.text }); }
  measure() { return this.measured; }
  adopt(version) { this.version = version; }
  saved(draft, dirty) { this.shown.push(dirty ? "saved, and more to save" : "saved"); }
  unsaved(answer) { this.shown.push(`not saved: ${trouble(answer)}`); }
  conflict({ there }) { this.shown.push(`conflict: ${there.reasoning}`); }
  sending() { this.shown.push("submitting"); }
  submitted(address, whole) { this.shown.push(whole ? `submitted, to ${address}` : "submitted without the last changes"); }
  notSubmitted(answer, again) { this.shown.push(`not submitted: ${trouble(answer)}${again ? ", again later" : ""}`); }
  stopped() { this.shown.push("stopped"); }
  pass() { this.shown.push("the browser submits"); }
  get last() { return this.shown.at(-1); }
}

let server, desk, clock, saving, parts;

beforeEach(async () => {
  server = await new Server().start();
  parts = page(server.address);
  desk = new Desk(server);
  clock = new Clock();
  saving = new Saving(desk, clock);
});
afterEach(() => server.stop());

function type(text) {
  desk.text = text;
  saving.changed();
}

// name, what the server answers to a save, what the person reads
const BAD = [
  ["an HTML page", { status: 200, body: "<!doctype html><h1>Accept the terms</h1>" }, "unreadable answer (200)"],
  ["an empty body", { status: 200, body: "" }, "unreadable answer (200)"],
  ["JSON of something else", { status: 200, body: "null" }, "unreadable answer (200)"],
  ["a draft without its parts", { status: 200, body: '{"version": 3}' }, "unreadable answer (200)"],
  ["half an answer", { status: 200, body: '{"version": 1, "sav', promised: 500 }, "no answer"],
  ["JSON that is cut off", { status: 200, body: '{"version": 1, "sav' }, "unreadable answer (200)"],
  ["no content", { status: 204 }, "unreadable answer (204)"],
  ["a redirect to another sign-in page", { status: 302, headers: { Location: "/sign-in?portal" } }, "signed out"],
  ["too large", { status: 413, body: "<h1>413 Request Entity Too Large</h1>" }, "refused (413)"],
  ["a conflict that is a page", { status: 409, body: "<h1>Conflict</h1>" }, "refused (409)"],
  ["a dead server behind a proxy", { status: 502, body: "<h1>502 Bad Gateway</h1>" }, "refused (502)"],
  ["a full disk", { status: 507, body: "{}" }, "the server's disk is full (507)"],
  ["silence", { hang: "before" }, "no answer"],
  ["an answer that never ends", { status: 200, body: '{"version"', hang: "after" }, "no answer"],
];

for (const [name, answer, said] of BAD) {
  describe(`an answer that is ${name}`, () => {
    beforeEach(() => {
      if (said === "signed out") server.person = 2;
      if (answer.hang) desk.session.patience = PATIENCE;
    });

    function mend(script) {
      server.script = script;
      server.person = 1;
      desk.session.patience = 20_000;
    }

    it("leaves saving at work: what is typed is kept, and saved when the server can", async () => {
      server.script = [answer];
      type("one");
      assert.equal(desk.copy, "one");
      await clock.pass(DELAY);
      assert.equal(desk.last, `not saved: ${said}`);
      type("one, two");
      assert.equal(desk.copy, "one, two");
      mend([GOOD]);
      await clock.pass(PAUSES[0]);
      assert.equal(desk.last, "saved");
      assert.equal(server.requests.at(-1).body, "one, two");
    });

    it("leaves Submit at work", async () => {
      type("one");
      server.script = [answer];
      await saving.submit();
      assert.match(desk.last, /^not submitted: /);
      assert.ok(desk.last.includes(said), desk.last);
      mend([LABEL]);
      await saving.submit();
      assert.equal(desk.last, "submitted, to /trajectories/2");
    });
  });
}

it("waits for the next try with what is typed while saving fails", async () => {
  server.script = [{ status: 503, headers: { "Retry-After": "7" } }];
  type("one");
  await clock.pass(DELAY);
  assert.deepEqual(clock.pending, [7000]);
  type("one, two");
  assert.deepEqual(clock.pending, [7000]);
});

it("waits longer from failure to failure, and as long as the server asks", () => {
  assert.deepEqual([0, 1, 2, 99].map((failures) => pauseOf(failures, 0)), [1000, 2000, 4000, 30_000]);
  assert.equal(pauseOf(0, 20_000), 20_000);
  assert.equal(pauseOf(99, 20_000), 30_000);
});

it("reads Retry-After as seconds and as a date, and takes no server at its word for more than ten minutes", async () => {
  const after = async (value) => (await read(async () => new Response("", { status: 503, headers: { "Retry-After": value } }))).after;
  assert.equal(await after("90"), 90_000);
  assert.equal(await after("86400"), 600_000);
  assert.equal(await after("soon"), 0);
  assert.equal(await after(new Date(0).toUTCString()), 0);
  const ahead = await after(new Date(Date.now() + 60_000).toUTCString());
  assert.ok(ahead > 50_000 && ahead <= 60_000, String(ahead));
});

it("says that the answer of a save is not the last word when more was typed meanwhile", async () => {
  server.script = [GOOD];
  type("one");
  const save = clock.pass(DELAY);
  type("one, two");
  await save;
  assert.equal(desk.last, "saved, and more to save");
  await clock.pass(DELAY);
  assert.equal(desk.last, "saved");
  assert.deepEqual(server.requests.map(({ body }) => body), ["one", "one, two"]);
});

it("takes a conflict with its own save, whose answer was lost, for that answer", async () => {
  const own = { status: 409, body: JSON.stringify({ version: 4, here: {}, there: { reasoning: "one" } }) };
  server.script = [{ status: 502, body: "<h1>502 Bad Gateway</h1>" }, own, GOOD];
  type("one");
  await clock.pass(DELAY);
  type("one, two");
  await clock.pass(PAUSES[0]);
  assert.equal(desk.version, 4);
  assert.equal(desk.last, "saved");
  assert.deepEqual(server.requests.map(({ body }) => body), ["one", "one, two", "one, two"]);
});

it("saves nothing over another window's version before the person has chosen, and keeps what is typed", async () => {
  server.script = [{ status: 409, body: JSON.stringify({ version: 4, here: {}, there: { reasoning: "theirs" } }) }];
  type("mine");
  await clock.pass(DELAY);
  assert.equal(desk.last, "conflict: theirs");
  type("mine, and more");
  assert.equal(desk.copy, "mine, and more");
  assert.deepEqual(clock.pending, []);
  server.script = [GOOD];
  saving.settled();
  await clock.pass(DELAY);
  assert.equal(desk.last, "saved");
});

it("does not repeat by itself what the server has refused with a reason, but after the next change", async () => {
  server.script = [{ status: 409, body: '{"message": "The submission is frozen."}' }];
  type("one");
  await clock.pass(DELAY);
  assert.deepEqual(clock.pending, []);
  type("two");
  assert.deepEqual(clock.pending, [DELAY]);
});

describe("submitting", () => {
  it("is repeated by itself, after the pause that the server asks for, until the server has it", async () => {
    server.script = [{ status: 503, headers: { "Retry-After": "5" } }, { status: 507 }, LABEL];
    desk.text = "all";
    await saving.submit("button");
    assert.equal(desk.last, "not submitted: server unavailable (503), again later");
    assert.ok(clock.pending.includes(5000));
    await clock.pass(5000);
    assert.equal(desk.last, "not submitted: the server's disk is full (507), again later");
    await clock.pass(PAUSES[1]);
    assert.equal(desk.last, "submitted, to /trajectories/2");
    assert.deepEqual(server.requests.map(({ path, body }) => `${path} ${body}`), Array(3).fill("/submit all"));
  });

  it("ends when the server refuses it", async () => {
    server.script = [{ status: 409, body: '{"message": "Your reservation has ended."}' }];
    desk.text = "all";
    await saving.submit();
    assert.equal(desk.last, "not submitted: refused (409)");
    server.script = [GOOD];
    await clock.pass(60_000);
    assert.deepEqual(server.requests.map(({ path }) => path), ["/submit", "/draft"]);
  });

  it("never repeats what the person has changed since", async () => {
    server.script = [{ status: 502 }];
    desk.text = "all";
    await saving.submit();
    type("all, no");
    assert.equal(desk.last, "stopped");
    server.script = [GOOD];
    await clock.pass(60_000);
    assert.deepEqual(server.requests.map(({ path }) => path), ["/submit", "/draft"]);
  });

  it("goes out once however often it is pressed, and never stays silent", async () => {
    server.script = [LABEL];
    desk.text = "all";
    const first = saving.submit();
    saving.submit();
    saving.submit();
    assert.deepEqual(desk.shown, ["submitting", "submitting", "submitting"]);
    await first;
    assert.equal(server.requests.length, 1);
  });

  it("keeps what was typed while it was on its way, and says so", async () => {
    server.script = [LABEL];
    desk.text = "all";
    const submitted = saving.submit();
    type("all, and more");
    await submitted;
    assert.equal(desk.copy, "all, and more");
    assert.equal(desk.last, "submitted without the last changes");
  });

  it("waits for a save on its way, so that no draft comes after the label", async () => {
    server.script = [GOOD, LABEL];
    type("all");
    const save = clock.pass(DELAY);
    const submitted = saving.submit();
    await Promise.all([save, submitted]);
    assert.deepEqual(server.requests.map(({ path }) => path), ["/draft", "/submit"]);
  });

  it("does not wait for the time on the desk to be reported when that hangs", async () => {
    desk.measured = new Promise(() => {});
    server.script = [LABEL];
    desk.text = "all";
    const submitted = saving.submit();
    await Promise.resolve();
    await clock.pass(3000);
    await submitted;
    assert.equal(desk.last, "submitted, to /trajectories/2");
  });

  it("lets the browser fetch the form with its errors, and no other page with status 400", async () => {
    desk.text = "half";
    server.script = [{ status: 400, body: "<h1>400 Bad Request</h1>" }];
    await saving.submit();
    assert.equal(desk.last, "not submitted: refused (400)");
    server.script = [{ status: 400, body: '<form id="label-form" class="label-form">' }];
    await saving.submit();
    assert.equal(desk.last, "the browser submits");
  });

  it("goes on at once when the person has signed in again", async () => {
    server.script = [{ status: 302, headers: { Location: "/sign-in" } }, LABEL];
    server.person = 2;
    desk.text = "all";
    await saving.submit();
    assert.equal(desk.last, "not submitted: signed out, again later");
    server.person = 1;
    await saving.retry();
    assert.equal(desk.last, "submitted, to /trajectories/2");
  });
});

describe("a session that has ended", () => {
  it("shows the bar, and takes it away when the person has signed in in another window", async () => {
    server.script = [{ status: 302, headers: { Location: "/sign-in" } }];
    server.person = 2;
    type("one");
    await clock.pass(DELAY);
    assert.equal(desk.last, "not saved: signed out");
    assert.equal(parts.bar.hidden, false);
    server.person = 1;
    server.script = [{ status: 302, headers: { Location: "/sign-in" } }, GOOD];
    await clock.pass(PAUSES[0]);
    assert.equal(desk.last, "saved");
    assert.equal(parts.bar.hidden, true);
    assert.equal(parts.token.value, "fresh");
  });

  it("does not ask for ever when the server knows the person and still redirects", async () => {
    server.script = [{ status: 302, headers: { Location: "/sign-in" } }];
    type("one");
    await clock.pass(DELAY);
    assert.equal(desk.last, "not saved: signed out");
    assert.equal(server.requests.length, 2);
  });
});
