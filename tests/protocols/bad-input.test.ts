/**
 * Bodies of messages that make no sense, from clients: mutated copies of sound ones, of every kind that
 * clients may send, and of those that they may not. The node answers each with a code, stays up, serves
 * others, and keeps no lock.
 */

import { expect, test } from "vitest";
import { decodeNumbered, leftMsOf } from "../../src/cluster/session.ts";
import { decodeParts, Submit } from "../../src/cluster/submit.ts";
import { DESCRIBE_KIND, type Request } from "../../src/fabric/fabric.ts";
import { Reader, Writer } from "../../src/fabric/wire.ts";
import * as kinds from "../../src/protocols/kinds.ts";
import type { Message } from "../../src/protocols/message.ts";
import { decodeOrigin } from "../../src/protocols/origin.ts";
import { Read } from "../../src/protocols/phases/read.ts";
import { Validate } from "../../src/protocols/phases/validate.ts";
import { Part } from "../../src/protocols/writes.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { balancesOf, FIRST_BALANCE, LONG_MS, Scene, transfer } from "../simulation/scene.ts";

const SEED = fixedSeed(20_26);
const ROUNDS = 5_000;
const SESSION = "garbage";
const TIME = { leftMs: () => 1_000 };

function wordsOf(message: Message): Int32Array {
  const out = new Writer();
  message.encode(out);
  return out.views.i32.slice(0, out.at);
}

/** Some words are others, or gone, or twice. */
function mutated(words: Int32Array, random: Random): Int32Array {
  const list = [...words];
  for (let changes = 1 + random.below(3); changes > 0; changes--) {
    const at = random.below(list.length + 1);
    switch (random.below(6)) {
      case 0:
        list[at] = random.next() | 0;
        break;
      case 1:
        list[at] = random.below(8) - 2;
        break;
      case 2:
        list[at] = (list[at] ?? 0) + random.below(5) - 2;
        break;
      case 3:
        list.splice(at, 1 + random.below(3));
        break;
      case 4:
        list.splice(at, 0, ...list.slice(at, at + 1 + random.below(6)));
        break;
      default:
        list.length = at;
    }
  }
  return Int32Array.from(list);
}

test(`mutated messages of clients (seed ${SEED})`, async () => {
  const scene = new Scene();
  const random = new Random(SEED);
  const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
  const spare = scene.accountAt(0, 1);
  scene.open([a, b, spare]);
  const client = await scene.client();
  const other = await scene.client();
  const partition = scene.accounts.partitionOf(spare);
  let isOpen = false;
  client.endpoint.send(0, {
    kind: kinds.OPEN_SESSION,
    encode: (out) => out.text(SESSION),
    replied: () => {
      isOpen = true;
    },
    failed: (error) => {
      throw error;
    },
  });
  scene.pass(LONG_MS);
  expect(isOpen).toBe(true);
  let number = 0;
  const sound = (): Message[] => {
    const numbered = { session: SESSION, number: number++ };
    const part = scene.put(spare, 7n);
    part.depend(0, 1024, 1, 1);
    const elsewhere = new Part();
    elsewhere.depend(0, 2048, 1, 1);
    const key = { table: scene.accounts.id, partition, key: spare };
    return [
      new Submit(0, numbered, { parts: new Map([[0, part]]), executedIn: 1 }, TIME),
      new Submit(
        0,
        numbered,
        {
          parts: new Map([
            [0, part],
            [1, elsewhere],
          ]),
          executedIn: 1,
        },
        TIME,
      ),
      new Read(0, [key, key], new Part(), () => {}),
      new Validate(0, part),
    ];
  };
  let ended = 0;
  const codes = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++) {
    const messages = sound();
    const message = messages[random.below(messages.length)];
    const words = mutated(wordsOf(message), random);
    const anyKind = Object.keys(kinds.KIND_NAMES).map(Number);
    const kind = random.below(5) === 0 ? anyKind[random.below(anyKind.length)] : message.kind;
    const request: Request = {
      kind: kind === DESCRIBE_KIND ? kinds.READ : kind,
      encode: (out) => out.words(words, 0, words.length),
      replied: () => {
        ended++;
      },
      failed: ({ code }: SituError) => {
        ended++;
        codes.set(code, (codes.get(code) ?? 0) + 1);
      },
    };
    client.endpoint.send(0, request);
    if (round % 20 === 0) scene.pass(10_000);
  }
  scene.pass(LONG_MS);
  expect(ended).toBe(ROUNDS);
  expect([...codes.keys()]).toContain("SITU_PROTOCOL");
  scene.rest();
  // Others see nothing of it.
  expect((await scene.run(transfer(other, a, b))).kind).toBe("ok");
  const seen = await scene.run(balancesOf(other, [a, b]));
  expect(seen).toMatchObject({ result: [FIRST_BALANCE - 1n, FIRST_BALANCE + 1n] });
  scene.rest();
});

test("a part that says less than it holds is refused", () => {
  const scene = new Scene();
  const part = scene.put(scene.accountAt(0), 7n);
  const hidden = new Part(part.writes, 0);
  const numbered = { session: SESSION, number: 0 };
  const words = wordsOf(
    new Submit(0, numbered, { parts: new Map([[0, hidden]]), executedIn: 1 }, TIME),
  );
  const out = new Writer();
  out.words(words, 0, words.length);
  const body = new Reader(out.views).reset(out.views, 0, out.at);
  decodeNumbered(body);
  leftMsOf(body);
  body.word();
  decodeOrigin(body);
  expect(() => decodeParts(body)).toThrow(expect.objectContaining({ code: "SITU_PROTOCOL" }));
});
