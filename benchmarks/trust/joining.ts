// Processes that join a `lazy` store, commit once and leave: from the start of the first to the end of
// the last. All of them have it open at the same moment.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { open } from "situ";
import { diskFolder } from "../durable/disk.ts";
import { counted } from "../harness/figures.ts";
import { onRelease, temporaryFolder } from "../harness/resources.ts";
import { Counter, type JoiningTask } from "./joining-process.ts";
import type { TrustMeasure } from "./measure.ts";

const PROCESSES = 250;
const BAR = { atMost: 20 };

export const joining: TrustMeasure = {
  name: "joining",
  async run({ options, progress, memoryFolder }) {
    const processes = options.quick ? 20 : PROCESSES;
    const path = temporaryFolder(diskFolder());
    const memoryDir = temporaryFolder(memoryFolder);
    // The store is there already: this is about joining, not about creating one.
    await (await open({ path, memoryDir, tables: [Counter], durability: "lazy" })).close();
    const startMs = performance.now();
    const children = Array.from({ length: processes }, (_, id) => join({ path, memoryDir, id }));
    let joined = 0;
    await Promise.all(
      children.map(async ({ committed }) => {
        await committed;
        progress.show(`joining: ${++joined} of ${processes}`);
      }),
    );
    const joinedMs = performance.now() - startMs;
    for (const { leave } of children) leave();
    await Promise.all(children.map(({ ended }) => ended));
    const seconds = (performance.now() - startMs) / 1_000;
    const db = await open({ path, memoryDir, tables: [Counter] });
    const rows = db.scan(Counter).toArray().length;
    await db.close();
    if (rows !== processes) throw new Error(`${rows} of ${processes} commits are there`);
    const name = `${processes} processes join and leave a lazy store`;
    return {
      figures: [counted(name, BAR, seconds, "seconds")],
      notes: [
        `joining: all ${processes} had joined and committed after ${(joinedMs / 1_000).toFixed(1)} s; ` +
          `${readdirSync(`${path}/log`).length} files of log`,
      ],
    };
  },
};

interface Joined {
  readonly committed: Promise<void>;
  readonly ended: Promise<void>;
  leave(): void;
}

/** Told and heard through pipes: a channel of messages would cost each process more than the store. */
function join(task: JoiningTask): Joined {
  const script = fileURLToPath(new URL("./joining-process.js", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(task)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onRelease(() => {
    if (child.exitCode === null) child.kill("SIGKILL");
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.on("exit", (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`a joining process ended with ${signal ?? `exit code ${code}`}`));
    });
  });
  const committed = new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", () => resolve());
    ended.then(() => reject(new Error("a joining process ended before it committed")), reject);
  });
  return { committed, ended, leave: () => child.stdin.end() };
}
