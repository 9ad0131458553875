// Processes that join a `lazy` store, commit once and leave: from the start of the first to the end of
// the last. All of them have it open at the same moment. Right before, the same is timed with processes that
// open nothing, so that a reader can tell the machine from the store.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { open } from "situ";
import { diskFolder } from "../durable/disk.ts";
import { counted } from "../harness/figures.ts";
import { onRelease, temporaryFolder } from "../harness/resources.ts";
import { Counter, type JoiningTask } from "./joining-process.ts";
import type { TrustContext, TrustMeasure } from "./measure.ts";

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
    const bare = await timed(processes, "bare", progress, () => start("./bare-process.js", ""));
    const { joinedMs, leftMs } = await timed(processes, "joining", progress, (id) =>
      start("./joining-process.js", JSON.stringify({ path, memoryDir, id } satisfies JoiningTask)),
    );
    const seconds = leftMs / 1_000;
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
        `joining: ${processes} processes that open nothing had started after ` +
          `${(bare.joinedMs / 1_000).toFixed(1)} s and left after ${(bare.leftMs / 1_000).toFixed(1)} s, ` +
          "right before",
      ],
    };
  },
};

interface Started {
  /** It is there, or has committed. */
  readonly told: Promise<void>;
  readonly ended: Promise<void>;
  leave(): void;
}

/** All of them come, and when the last one is there, all leave. */
async function timed(
  processes: number,
  name: string,
  progress: TrustContext["progress"],
  startOne: (id: number) => Started,
): Promise<{ joinedMs: number; leftMs: number }> {
  const startMs = performance.now();
  const children = Array.from({ length: processes }, (_, id) => startOne(id));
  let there = 0;
  await Promise.all(
    children.map(async ({ told }) => {
      await told;
      progress.show(`${name}: ${++there} of ${processes}`);
    }),
  );
  const joinedMs = performance.now() - startMs;
  for (const { leave } of children) leave();
  await Promise.all(children.map(({ ended }) => ended));
  return { joinedMs, leftMs: performance.now() - startMs };
}

/** Told and heard through pipes: a channel of messages would cost each process more than the store. */
function start(file: string, task: string): Started {
  const script = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [script, task], {
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
  const told = new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", () => resolve());
    ended.then(() => reject(new Error("a joining process ended before it committed")), reject);
  });
  return { told, ended, leave: () => child.stdin.end() };
}
