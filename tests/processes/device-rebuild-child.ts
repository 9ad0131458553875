/** A process that rebuilds a lost device file, or its copy in the media log, and kills itself at a step of that. */

import { type RebuildStep, watchRebuilds } from "../../src/device/page-file.ts";
import { moveAll, openItems, writeRound } from "./device-store.ts";

export interface RebuildDeath {
  readonly path: string;
  readonly crashAt: RebuildStep;
  readonly round: number;
}

const { path, crashAt, round } = JSON.parse(process.argv[2]) as RebuildDeath;
watchRebuilds((step) => {
  if (step === crashAt) process.kill(process.pid, "SIGKILL");
});
const db = await openItems(path);
writeRound(db, round);
await db.durable();
moveAll(db);
