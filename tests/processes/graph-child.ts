/** One process of the graph's storm: adds, removes and changes edges, and deletes objects while others add edges. */

import { type DurabilityMode, SituError } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { dieAtStep, isStopped, listenForStop, orderOf, repeat } from "../helpers/process-child.ts";
import type { Life } from "../helpers/process-storm.ts";
import { fillHub, graphProblems, HUBS, IDS, openGraph, openStore, SPOKES } from "./graph-store.ts";

export interface GraphOrder extends Life {
  readonly path: string;
  /** Objects in the middle with lists of several elements, which are deleted in steps. */
  readonly hubs?: boolean;
  readonly durability?: DurabilityMode;
}

const { path, seed, dieAtStep: lastStep, hubs = false, durability } = orderOf<GraphOrder>();
const random = new Random(seed);
dieAtStep(lastStep);
listenForStop();
const db = await openStore(path, durability);
const g = openGraph(db);

const anyId = (): number => 1 + random.below(IDS);

/** An end of the edge may have been deleted meanwhile. */
function unlessMissing(work: () => void): void {
  try {
    work();
  } catch (error) {
    const code = error instanceof SituError ? error.code : "";
    if (code !== "SITU_MISSING" && code !== "SITU_EXISTS") throw error;
  }
}

function change(): void {
  const [a, b] = [anyId(), anyId()];
  const dice = random.below(100);
  const time = random.below(1_000);
  unlessMissing(() => {
    if (dice < 45) g.assocAdd(a, "follows", b, time, { n: random.below(1_000) });
    else if (dice < 60) g.assocDelete(a, "follows", b);
    else if (dice < 70) g.assocChangeType(a, "follows", b, "blocks");
    else if (dice < 78) g.assocChangeType(a, "blocks", b, "follows");
    else if (dice < 86) g.objUpdate("user", a, { name: "x".repeat(random.below(300)) });
    else if (dice < 92) g.objAdd("user", { name: `user ${a}` }, { id: a });
    else if (dice < 94) db.transactSync((tx) => g.in(tx).objDelete("user", a));
    else look(a);
  });
}

/** A range that is read while its head changes is a range that was there. */
function look(id: number): void {
  const edges = g.assocRange(id, "follows", 0, 100);
  if (edges.some(({ time }, i) => i > 0 && time > edges[i - 1].time)) {
    throw new Error(`the edges of ${id} are out of order`);
  }
  const problems = db.transactSync((tx) => graphProblems(g.in(tx), [id]));
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

let deleting: Promise<void> | undefined;

/** Large lists: any edge of theirs may be added, moved or removed, and their object goes and comes back. */
function changeHub(): void {
  const hub = 1 + random.below(HUBS);
  const spoke = HUBS + 1 + random.below(SPOKES);
  const [a, b] = random.below(2) === 0 ? [hub, spoke] : [spoke, hub];
  const dice = random.below(1_000);
  const time = random.below(1_000);
  unlessMissing(() => {
    if (dice < 450) g.assocAdd(a, "follows", b, time, { n: random.below(1_000) });
    else if (dice < 700) g.assocDelete(a, "follows", b);
    else if (dice < 780) g.assocChangeType(a, "follows", b, "blocks");
    else if (dice < 860) g.assocChangeType(a, "blocks", b, "follows");
    else if (dice < 900) g.objUpdate("user", hub, { name: "x".repeat(random.below(2_000)) });
    else if (dice < 910) deleting ??= replaceHub(hub);
    else lookAtHub(hub);
  });
}

/** In steps, which others see in between and go on with if this process dies. */
async function replaceHub(hub: number): Promise<void> {
  await g.objDelete("user", hub);
  unlessMissing(() => fillHub(db, g, hub));
  deleting = undefined;
}

function lookAtHub(hub: number): void {
  const problems = db.transactSync((tx) => {
    const inside = g.in(tx);
    const edges = inside.assocRange(hub, "follows", 0, 10_000);
    const counted = inside.assocCount(hub, "follows");
    const found: string[] = [];
    if (edges.length !== counted) found.push(`${hub}: ${edges.length} edges, counted ${counted}`);
    for (const [i, { id2, time }] of edges.entries()) {
      if (i > 0 && time > edges[i - 1].time) found.push(`${hub}: out of order`);
      if (i % 50 !== 0) continue;
      if (inside.assocGet(hub, "follows", id2)?.time !== time) found.push(`${hub}: ${id2} is lost`);
      if (inside.assocGet(id2, "followedBy", hub)?.time !== time) {
        found.push(`${hub}: ${id2} has no inverse`);
      }
    }
    return found;
  });
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

console.log("ready");
await repeat(isStopped, hubs ? changeHub : change);
await deleting;
await db.close();
