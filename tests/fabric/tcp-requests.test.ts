/** The tables of requests: those under way, and those that wait. */

import { describe, expect, test } from "vitest";
import { RequestsUnderWay, WaitingRequests } from "../../src/fabric/exchange/requests.ts";
import { MAX_IN_FLIGHT } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { type Asked, echo } from "../helpers/fabric-requests.ts";

describe("requests under way", () => {
  test("are found by their ids, once", () => {
    const table = new RequestsUnderWay();
    const requests = Array.from({ length: MAX_IN_FLIGHT }, (_, i) => echo(i));
    const ids = requests.map((request) => table.add(request));
    expect(new Set(ids).size).toBe(MAX_IN_FLIGHT);
    expect([table.isFull, table.count]).toEqual([true, MAX_IN_FLIGHT]);
    for (const [i, id] of ids.entries()) {
      expect(table.take(id)).toBe(requests[i]);
      expect(table.take(id)).toBeUndefined();
    }
    expect([table.isFull, table.count]).toEqual([false, 0]);
  });

  test("a reply to an earlier request finds nobody", () => {
    const table = new RequestsUnderWay();
    const old = table.add(echo(1));
    table.take(old);
    const request = echo(2);
    const id = table.add(request);
    expect(id).not.toBe(old);
    expect(table.take(old)).toBeUndefined();
    expect(table.take(-1)).toBeUndefined();
    expect(table.take(id)).toBe(request);
  });

  test("ids go round through all of their bits", () => {
    const table = new RequestsUnderWay();
    const request = echo();
    let last = -1;
    for (let i = 0; i < 2 ** 21; i++) {
      const id = table.add(request);
      if (id === last || table.take(id) === undefined) throw new Error(`id ${id} at ${i}`);
      last = id;
    }
    expect(table.count).toBe(0);
  });

  test("are all taken at once", () => {
    const table = new RequestsUnderWay();
    const requests = Array.from({ length: 50 }, (_, i) => echo(i));
    const ids = requests.map((request) => table.add(request));
    table.take(ids[7]);
    expect(new Set(table.takeAll())).toEqual(new Set(requests.filter((_, i) => i !== 7)));
    expect(ids.every((id) => table.take(id) === undefined)).toBe(true);
    expect(table.count).toBe(0);
  });
});

test("requests that wait come out in the order in which they came", () => {
  const seed = 11;
  const random = new Random(seed);
  const queue = new WaitingRequests();
  const model: { request: Asked; tick: number }[] = [];
  for (let tick = 0; tick < 20_000; tick++) {
    if (random.below(1_000) < (tick < 10_000 ? 600 : 400)) {
      const request = echo(tick);
      queue.add(request, tick);
      model.push({ request, tick });
    } else if (model.length > 0) {
      expect(queue.oldestTick, `seed ${seed}`).toBe(model[0].tick);
      expect(queue.take(), `seed ${seed}`).toBe(model.shift()?.request);
    }
    expect(queue.count).toBe(model.length);
  }
  expect(queue.takeAll()).toEqual(model.map(({ request }) => request));
  expect(queue.count).toBe(0);
});
