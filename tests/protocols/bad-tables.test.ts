/** Schemas that make no sense, from clients: refused with a code, and the node stays up. */

import { expect, test } from "vitest";
import { OpenTable } from "../../src/cluster/describe.ts";
import type { Routine } from "../../src/protocols/message.ts";
import { schemaOf } from "../../src/tables/schema.ts";
import { Account, Scene, transfer } from "../simulation/scene.ts";

const SOUND = { name: "t", fields: { id: "u32" }, key: ["id"], ordered: false, indexes: [] };

const BAD: readonly unknown[] = [
  undefined,
  null,
  5,
  "text",
  [],
  {},
  { ...SOUND, name: 5 },
  { ...SOUND, name: "" },
  { ...SOUND, name: "x".repeat(10_000) },
  { ...SOUND, fields: null },
  { ...SOUND, fields: {} },
  { ...SOUND, fields: { id: "nothing" } },
  { ...SOUND, fields: { id: 7 } },
  { ...SOUND, fields: { id: null } },
  { ...SOUND, fields: { id: "bytes(0)" } },
  { ...SOUND, key: undefined },
  { ...SOUND, key: "id" },
  { ...SOUND, key: [] },
  { ...SOUND, key: ["other"] },
  { ...SOUND, key: [null] },
  { ...SOUND, ordered: 7 },
  { ...SOUND, layout: "heap" },
  { ...SOUND, layout: null },
  { ...SOUND, indexes: 5 },
  { ...SOUND, indexes: [null] },
  { ...SOUND, indexes: [{}] },
  { ...SOUND, indexes: [{ name: "i", on: ["other"], unique: false, kind: "ordered" }] },
  { ...SOUND, indexes: [{ name: "i", on: ["id"], unique: true, kind: "ordered" }] },
  { ...SOUND, fields: { id: "u32", p: "pointer" } },
];

test("schemas that make no sense", async () => {
  const scene = new Scene();
  const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
  scene.open([a, b]);
  const client = await scene.client();
  const answers: string[] = [];
  for (const schema of BAD) {
    const message = new OpenTable(0, JSON.stringify(schema) ?? "{{");
    const routine = (function* (): Routine<void> {
      yield [message];
    })();
    let isDone = false;
    const done = (): void => {
      isDone = true;
    };
    client.driver.run(routine, 1_000, done, done);
    scene.until(() => isDone);
    if (message.error === undefined) answers.push(`${JSON.stringify(schema)} was opened`);
    else if (!/^SITU_(PROTOCOL|SCHEMA|UNSUPPORTED|TOO_LARGE)$/.test(message.error.code)) {
      answers.push(`${JSON.stringify(schema)}: ${message.error.code}`);
    }
  }
  expect(answers).toEqual([]);
  expect((await scene.run(transfer(client, a, b))).kind).toBe("ok");
  scene.rest();
});

test("a table that is there with other fields: refused with both", async () => {
  const scene = new Scene();
  scene.open([scene.accountAt(0)]);
  const client = await scene.client();
  const { fields, ...rest } = schemaOf(Account);
  const message = new OpenTable(0, JSON.stringify({ ...rest, fields: { ...fields, more: "u32" } }));
  let isDone = false;
  const done = (): void => {
    isDone = true;
  };
  const routine = (function* (): Routine<void> {
    yield [message];
  })();
  client.driver.run(routine, 1_000, done, done);
  scene.until(() => isDone);
  expect(message.error?.code).toBe("SITU_SCHEMA");
  expect(message.error?.message).toContain("more");
});
