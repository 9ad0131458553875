/** What the next configuration is, checked over random lives of clusters. */

import { describe, expect, test } from "vitest";
import { configurationOf, type NodeAddress } from "../../src/cluster/configuration.ts";
import {
  afterFailures,
  drainRefusal,
  type Filled,
  initialPlacement,
  lostPartitions,
  nextStep,
  onlyAt,
  type PlacedConfiguration,
  withDraining,
  withFilled,
  withNode,
} from "../../src/cluster/planning/planning.ts";
import { MOVED_AT_ONCE } from "../../src/runtime/limits.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync } from "../helpers/store.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

function node(id: number, domain?: string): NodeAddress {
  return { id, host: "h", port: 1, ...(domain === undefined ? {} : { domain }) };
}

function formed(nodes: readonly NodeAddress[], backups: number, partitions = 64): Placed {
  const placement = initialPlacement(nodes, partitions, backups);
  return checked(
    configurationOf({ nodes, backups, partitions, manager: nodes[0].id, placement }, "a test"),
  );
}

type Placed = PlacedConfiguration;

/** What a configuration that is planned must be accepted as by everybody. */
function checked(configuration: unknown): Placed {
  return configurationOf(configuration, "planned") as Placed;
}

function copies({ placement }: Placed, id: number): number {
  return placement.filter((each) => [each.primary, ...each.backups].includes(id)).length;
}

function primaries({ placement }: Placed, id: number): number {
  return placement.filter((each) => each.primary === id).length;
}

function spread(counts: readonly number[]): number {
  return Math.max(...counts) - Math.min(...counts);
}

function filling({ placement }: Placed): Filled[] {
  return placement.flatMap((each, partition) =>
    each.filling.map((id) => ({ partition, node: id })),
  );
}

/** Everything that is under way arrives, step by step, until nothing is better elsewhere. */
function settled(from: Placed, seen: (next: Placed) => void = () => {}): Placed {
  let current = from;
  for (let steps = 0; steps < 400; steps++) {
    const under = filling(current);
    const next = under.length > 0 ? withFilled(current, under) : nextStep(current);
    if (next === undefined) return current;
    current = checked(next);
    seen(current);
  }
  throw new Error("planning does not come to an end");
}

function domainsOf({ nodes }: Placed, ids: readonly number[]): number {
  const byId = new Map(nodes.map(({ id, domain }) => [id, domain ?? `node ${id}`]));
  return new Set(ids.map((id) => byId.get(id))).size;
}

/** The rules between a configuration and the next. */
function checkSuccessor(before: Placed, after: Placed): void {
  expect(after.configurationId).toBe(before.configurationId + 1);
  after.placement.forEach((now, partition) => {
    const old = before.placement[partition];
    const isPrimarySame = now.primary === old.primary;
    const isSame =
      isPrimarySame &&
      String([...now.backups].sort()) === String([...old.backups].sort()) &&
      String([...now.filling].sort()) === String([...old.filling].sort());
    expect(now.primarySince).toBe(isPrimarySame ? old.primarySince : after.configurationId);
    expect(now.replicasSince).toBe(isSame ? old.replicasSince : after.configurationId);
    // What was a copy before can be the primary, not what has just been filled.
    expect([old.primary, ...old.backups]).toContain(now.primary);
  });
}

const shapes = fc.record({
  count: fc.integer({ min: 1, max: 9 }),
  backups: fc.integer({ min: 0, max: 3 }),
  partitions: fc.integer({ min: 1, max: 80 }),
});

describe("the first placement", () => {
  test("is balanced within one, in copies and in primaries", () => {
    check(
      fc.property(shapes, ({ count, backups, partitions }) => {
        const f = Math.min(backups, count - 1);
        const first = formed(
          upTo(count).map((id) => node(id)),
          f,
          partitions,
        );
        expect(spread(upTo(count).map((id) => copies(first, id)))).toBeLessThanOrEqual(1);
        expect(spread(upTo(count).map((id) => primaries(first, id)))).toBeLessThanOrEqual(1);
        for (const each of first.placement) expect(each.backups).toHaveLength(f);
        expect(nextStep(first)).toBeUndefined();
      }),
    );
  });

  test("puts copies into different domains where there are enough, and balances within each", () => {
    const domains = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 3, maxLength: 9 });
    check(
      fc.property(domains, (racks) => {
        const first = formed(
          racks.map((rack, id) => node(id, `rack-${rack}`)),
          2,
        );
        const possible = Math.min(3, new Set(racks).size);
        for (const { primary, backups } of first.placement) {
          expect(domainsOf(first, [primary, ...backups])).toBe(possible);
        }
        if (possible < 3) return;
        for (const rack of new Set(racks)) {
          const ids = upTo(racks.length).filter((id) => racks[id] === rack);
          expect(spread(ids.map((id) => copies(first, id)))).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  test("gives the partitions of a node many different backups", () => {
    const first = formed(
      upTo(20).map((id) => node(id)),
      1,
      2_000,
    );
    const others = first.placement
      .filter(({ primary }) => primary === 4)
      .map((each) => each.backups[0]);
    expect(new Set(others).size).toBeGreaterThan(15);
  });
});

describe("after failures", () => {
  test("a backup takes over, and what is missing is filled", () => {
    const before = formed(
      upTo(4).map((id) => node(id)),
      2,
    );
    const after = checked(afterFailures(before, new Set([0, 1, 3]), 1));
    checkSuccessor(before, after);
    expect(after.manager).toBe(1);
    expect(after.nodes.map(({ id }) => id)).toEqual([0, 1, 3]);
    after.placement.forEach((now, partition) => {
      const old = before.placement[partition];
      const had = [old.primary, ...old.backups].includes(2);
      expect(now.filling).toHaveLength(had ? 1 : 0);
      expect(now.backups).toHaveLength(had ? 1 : 2);
    });
    expect(spread([0, 1, 3].map((id) => primaries(after, id)))).toBeLessThanOrEqual(6);
    expect(spread([0, 1, 3].map((id) => primaries(settled(after), id)))).toBeLessThanOrEqual(1);
  });

  test("a filling node is never promoted; a partition without copies is lost, and says whose it was", () => {
    const before = formed(
      [0, 1, 2].map((id) => node(id)),
      1,
    );
    const once = checked(afterFailures(before, new Set([0, 1]), 0));
    // Node 1 fills what 0 and 2 had, so what only 0 has left is lost with it.
    const alone = onlyAt(once, 0);
    expect(alone.length).toBeGreaterThan(0);
    const twice = checked(afterFailures(once, new Set([1]), 1));
    expect(lostPartitions(twice)).toEqual(alone);
    for (const partition of alone) {
      expect(twice.placement[partition]).toMatchObject({ primary: 0, backups: [], filling: [] });
      expect(once.placement[partition].filling).toEqual([1]);
    }
    // It cannot come back empty, nor is it forgotten when others join.
    expect(failureSync("SITU_CONFIG", () => withNode(twice, node(0), false)).message).toContain(
      `node 0 had the last copies of ${alone.length} partitions`,
    );
    const joined = checked(withNode(twice, node(7), false));
    expect(lostPartitions(joined)).toEqual(alone);
    const back = checked(withNode(joined, node(0), true));
    checkSuccessor(joined, back);
    expect(lostPartitions(back)).toEqual([]);
    // It is not the one that it was: what that one had begun is not its own.
    expect(back.nodes.find(({ id }) => id === 0)?.since).toBe(back.configurationId);
    for (const partition of alone) expect(back.placement[partition].primary).toBe(0);
  });

  test("of several last copies, whichever returns first has the partition again", () => {
    const before = formed(
      upTo(5).map((id) => node(id)),
      1,
    );
    const after = checked(afterFailures(before, new Set([2, 3, 4]), 2));
    const lost = lostPartitions(after);
    expect(lost.length).toBeGreaterThan(0);
    const back = checked(withNode(after, node(1), true));
    for (const partition of lost) expect(back.placement[partition].primary).toBe(1);
    settled(back);
  });
});

describe("nodes that join and leave", () => {
  test("a node that joins gets its share, and nothing moves between the others", () => {
    check(
      fc.property(shapes, ({ count, backups, partitions }) => {
        const f = Math.min(backups, count - 1);
        const before = formed(
          upTo(count).map((id) => node(id)),
          f,
          partitions,
        );
        let moved = 0;
        let last = checked(withNode(before, node(count), false));
        checkSuccessor(before, last);
        const after = settled(last, (next) => {
          checkSuccessor(last, next);
          last = next;
          const now = filling(next);
          expect(new Set(now.map(({ partition }) => partition)).size).toBeLessThanOrEqual(
            MOVED_AT_ONCE,
          );
          expect(now.every((each) => each.node === count)).toBe(true);
          moved += now.length;
        });
        const all = upTo(count + 1);
        expect(spread(all.map((id) => copies(after, id)))).toBeLessThanOrEqual(1);
        expect(spread(all.map((id) => primaries(after, id)))).toBeLessThanOrEqual(1);
        expect(moved).toBe(copies(after, count));
        expect(moved).toBeLessThanOrEqual(Math.ceil((partitions * (f + 1)) / (count + 1)));
      }),
      40,
    );
  });

  test("a node of a new domain takes what has two copies in one", () => {
    const nodes = [node(0, "a"), node(1, "a"), node(2, "b")];
    const before = formed(nodes, 2);
    const after = settled(checked(withNode(before, node(3, "c"), false)));
    for (const { primary, backups } of after.placement) {
      expect(domainsOf(after, [primary, ...backups])).toBe(3);
    }
  });

  test("a node that is drained gives everything away, and copies never get fewer", () => {
    check(
      fc.property(shapes, ({ count, backups, partitions }) => {
        const f = Math.min(backups, count - 1);
        const before = formed(
          upTo(count + 1).map((id) => node(id)),
          f,
          partitions,
        );
        expect(drainRefusal(before, 0)).toBeUndefined();
        const draining = checked(withDraining(before, 0, true));
        checkSuccessor(before, draining);
        const after = settled(draining, (next) => {
          for (const { backups: now } of next.placement) {
            expect([f, f + 1]).toContain(now.length);
          }
        });
        expect([copies(after, 0), primaries(after, 0)]).toEqual([0, 0]);
        const others = upTo(count + 1).slice(1);
        expect(spread(others.map((id) => copies(after, id)))).toBeLessThanOrEqual(1);
        expect(settled(checked(withDraining(after, 0, false))).nodes[0]).toEqual(node(0));
      }),
      40,
    );
  });

  test("a node that others cannot replace is not drained", () => {
    const before = formed(
      [0, 1, 2].map((id) => node(id)),
      2,
    );
    expect(drainRefusal(before, 1)).toMatch(
      /each row has 3 copies, and without node 1 there are 2/,
    );
    expect(drainRefusal(before, 9)).toMatch(/no node 9/);
    expect(failureSync("SITU_CONFIG", () => withNode(before, node(1), false)).message).toContain(
      "has a node 1 already",
    );
  });
});

test("over a random life, a primary always has its data, and planning comes to rest", () => {
  type Event = readonly ["fail" | "join" | "fill" | "step", number];
  const events = fc.array(
    fc.tuple(fc.constantFrom<Event[0]>("fail", "join", "fill", "step"), fc.nat(99)),
    { maxLength: 25 },
  );
  const racks = fc.array(fc.nat(2), { minLength: 3, maxLength: 5 });
  check(
    fc.property(racks, events, (domains, life) => {
      let current = formed(
        domains.map((rack, id) => node(id, `rack-${rack}`)),
        2,
        16,
      );
      // Who really has all data of each partition.
      const full = current.placement.map((each) => new Set([each.primary, ...each.backups]));
      let nextId = domains.length;
      const move = (next: Placed | undefined): void => {
        if (next === undefined) return;
        const after = checked(next);
        checkSuccessor(current, after);
        current = after;
        after.placement.forEach((each, partition) => {
          for (const id of [each.primary, ...each.backups]) expect(full[partition]).toContain(id);
        });
      };
      for (const [what, chance] of life) {
        if (what === "fail" && current.nodes.length > 1) {
          const dead = current.nodes[chance % current.nodes.length].id;
          const survivors = new Set(current.nodes.map(({ id }) => id).filter((id) => id !== dead));
          move(afterFailures(current, survivors, [...survivors][0]));
        } else if (what === "join" && current.nodes.length < 7) {
          move(withNode(current, node(nextId++, `rack-${chance % 3}`), false));
        } else if (what === "fill") {
          const some = filling(current).filter((_, i) => (i + chance) % 2 === 0);
          for (const { partition, node: id } of some) full[partition].add(id);
          move(withFilled(current, some));
        } else if (what === "step") move(nextStep(current));
      }
      const end = settled(current);
      const wanted = Math.min(2, end.nodes.length - 1);
      const lost = new Set(lostPartitions(end));
      end.placement.forEach(({ primary, backups }, partition) => {
        if (lost.has(partition)) return;
        expect(backups).toHaveLength(wanted);
        const possible = Math.min(
          wanted + 1,
          domainsOf(
            end,
            end.nodes.map(({ id }) => id),
          ),
        );
        expect(domainsOf(end, [primary, ...backups])).toBe(possible);
      });
    }),
  );
});
