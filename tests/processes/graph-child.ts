/** One process of the graph's storm: adds, removes and changes edges, and deletes objects while others add edges. */

import { SituError } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { dieAtStep, isStopped, listenForStop, orderOf, repeat } from "../helpers/process-child.ts";
import type { Life } from "../helpers/process-storm.ts";
import { graphProblems, IDS, openGraph, openStore } from "./graph-store.ts";

export interface GraphOrder extends Life {
  readonly path: string;
}

const { path, seed, dieAtStep: lastStep } = orderOf<GraphOrder>();
const random = new Random(seed);
dieAtStep(lastStep);
listenForStop();
const db = await openStore(path);
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

console.log("ready");
await repeat(isStopped, change);
await db.close();
