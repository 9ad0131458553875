/** The rules of a Robin Hood table are broken on purpose, right in memory, and the check must tell. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { SEGMENT_SLOTS, SHARD_BUCKETS } from "../../src/runtime/limits.ts";
import { Geometry, homeSlotOf, SEGMENT_ROWS } from "../../src/stores/robinhood/layout.ts";
import { HEAD_BUCKETS, OVERFLOW, TAGS } from "../../src/stores/shards/layout.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { CheckedStore, expectFound, type Words } from "../helpers/checks.ts";

const Rows = table("rows", { id: u32(), value: u32() }, { key: "id", layout: "robinhood" });

let store: CheckedStore;
beforeEach(() => {
  store = new CheckedStore();
});
afterEach(() => store.dispose());

interface Slot {
  readonly segment: Words;
  readonly tagAt: number;
  readonly slotAt: number;
  readonly slot: number;
  readonly home: number;
}

/** All slots of the table's only shard. */
async function slotsOf(
  ids: readonly number[],
): Promise<{ slots: Slot[]; segmentOf(i: number): Words }> {
  const opened = store.open(Rows);
  store.fill(
    opened,
    ids.map((id) => ({ id, value: id })),
  );
  const { rows } = await store.parts("rows");
  const geometry = new Geometry(rows.structure.codec.fixedWords);
  const base = store.follow(store.objectAt(rows.root), HEAD_BUCKETS);
  const segmentOf = (index: number): Words => base.moved(store.executor, index * geometry.stride);
  const slots = Array.from({ length: SHARD_BUCKETS * SEGMENT_SLOTS }, (_, slot) => {
    const segment = segmentOf(Math.floor(slot / SEGMENT_SLOTS));
    const place = slot % SEGMENT_SLOTS;
    const tag = segment.get(TAGS + place);
    const slotAt = SEGMENT_ROWS + place * geometry.slotWords;
    const home = tag === 0 ? -1 : homeSlotOf(tag);
    return { segment, tagAt: TAGS + place, slotAt, slot, home };
  });
  return { slots, segmentOf };
}

const SOME = Array.from({ length: 300 }, (_, id) => id);

type Change = ReturnType<ReturnType<Words["place"]>["set"]>;

/** The words of a slot: its tag and its row. */
function contents({ segment, tagAt, slotAt }: Slot): number[] {
  return [segment.get(tagAt), segment.get(slotAt), segment.get(slotAt + 1)];
}

function written({ segment, tagAt, slotAt }: Slot, [tag, ...row]: readonly number[]): Change[] {
  const words = row.map((word, i) => segment.place(slotAt + i).set(word));
  return [segment.place(tagAt).set(tag), ...words];
}

/** Copies a row to another slot. */
function moved(from: Slot, to: Slot): Change[] {
  return written(to, contents(from));
}

function swapped(a: Slot, b: Slot): Change[] {
  const [first, second] = [contents(a), contents(b)];
  return [...written(a, second), ...written(b, first)];
}

test("sound as it is", async () => {
  await slotsOf(SOME);
  expect((await store.verify()).problems).toEqual([]);
});

test("a row behind a free slot", async () => {
  const { slots } = await slotsOf(SOME);
  const at = slots.findIndex(
    ({ home, slot }, i) => home === slot && slots[i + 1]?.home < 0 && slots[i + 2]?.home < 0,
  );
  const [from, , to] = [slots[at], slots[at + 1], slots[at + 2]];
  await expectFound(store, /slots from its home, behind a free one/, [
    ...moved(from, to),
    from.segment.place(from.tagAt).set(0),
  ]);
});

test("a row behind one of a later home", async () => {
  const { slots } = await slotsOf(SOME);
  const at = slots.findIndex(
    ({ home }, i) => home >= 0 && slots[i + 1]?.home > home && slots[i + 1].home <= i,
  );
  const [first, second] = [slots[at], slots[at + 1]];
  await expectFound(store, /lies behind one whose home is slot/, swapped(first, second));
});

test("a row before its home, or too far behind it", async () => {
  const { slots } = await slotsOf(SOME);
  const from = slots.find(({ home, slot }) => home === slot && slot >= 100)!;
  const to = slots.find(({ home, slot }) => home < 0 && slot < from.slot)!;
  await expectFound(store, /slots from its home, and must be below 16/, [
    ...moved(from, to),
    from.segment.place(from.tagAt).set(0),
  ]);
});

test("a chain of a segment that is no home", async () => {
  const codec = codecOf(Rows);
  const ids: number[] = [];
  for (let id = 0; ids.length < 30; id++) if (homeSlotOf(codec.stageKey(id)) === 60) ids.push(id);
  const { segmentOf } = await slotsOf(ids);
  const home = segmentOf(7);
  expect(home.get(OVERFLOW)).not.toBe(0);
  const last = segmentOf(SHARD_BUCKETS);
  const changes = [0, 1, 2].flatMap((word) => [
    last.place(OVERFLOW + word).set(home.get(OVERFLOW + word)),
    home.place(OVERFLOW + word).set(0),
  ]);
  await expectFound(store, /it is no home, and has a chain/, changes);
});
