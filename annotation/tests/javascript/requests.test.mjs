import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { it } from "node:test";

const FOLDER = new URL("../../../static/js/", import.meta.url);

it("no request of a page waits for ever for a silent server", () => {
  const endless = [];
  for (const name of readdirSync(FOLDER)) {
    const lines = readFileSync(new URL(name, FOLDER), "utf8").split("\n");
    lines.forEach((line, number) => {
      const statement = `${lines[number - 1] ?? ""}\n${line}`;
      // A request that outlives its page (keepalive) keeps nobody waiting.
      if (/(?<![.\w])fetch\((?!\))/.test(line) && !/async fetch/.test(line) && !/signal:|keepalive:/.test(statement)) {
        endless.push(`${name}:${number + 1}`);
      }
    });
  }
  assert.deepEqual(endless, []);
});
