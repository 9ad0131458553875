// Do two processes on disjoint keys do twice the work of one? Two children have the store open and
// half of the keys each; a round lets one work, then both. The bare loop, which shares nothing,
// goes through the same rounds: it says how much a second process gets from this machine at all.
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Progress } from "../harness/progress.ts";
import { onRelease } from "../harness/resources.ts";
import type { RoundsPlan } from "../harness/rounds.ts";
import type { StorePlace } from "./situ.ts";
import type { FromProcess, ProcessTask, ToProcess, Work } from "./transfer-process.ts";

/** Transfers per second, one entry per round. */
export interface Scaling {
  readonly one: number[];
  readonly two: number[];
}

type Ran = Extract<FromProcess, { kind: "ran" }>;

export async function measureTwoProcesses(
  place: StorePlace,
  rows: number,
  seed: number,
  plan: RoundsPlan,
  progress: Progress,
): Promise<Record<Work, Scaling>> {
  const half = rows >> 1;
  progress.show("starting two processes");
  const processes = await Promise.all([
    startProcess({ ...place, first: 0, rows: half, seed }),
    startProcess({ ...place, first: half, rows: half, seed }),
  ]);
  const scalings: Record<Work, Scaling> = {
    situ: { one: [], two: [] },
    bare: { one: [], two: [] },
  };
  const works = Object.keys(scalings) as Work[];
  for (const work of works) await runTogether(processes, work, plan.roundMs);
  for (let round = 0; round < plan.rounds; round++) {
    for (const work of works) {
      progress.show(`round ${round + 1} of ${plan.rounds}: one process and two, ${work}`);
      // Alternating who works alone: one of them may sit on the slower core or memory.
      const alone = processes[round % processes.length];
      scalings[work].one.push(await runTogether([alone], work, plan.roundMs));
      scalings[work].two.push(await runTogether(processes, work, plan.roundMs));
    }
  }
  await Promise.all(processes.map(stopProcess));
  return scalings;
}

async function startProcess(task: ProcessTask): Promise<ChildProcess> {
  const script = fileURLToPath(new URL("./transfer-process.js", import.meta.url));
  const child = fork(script, [JSON.stringify(task)]);
  onRelease(() => {
    if (child.exitCode === null) child.kill("SIGKILL");
  });
  await nextMessage(child);
  return child;
}

/** Operations per second of all of them, from the first start to the last end. */
async function runTogether(
  processes: readonly ChildProcess[],
  work: Work,
  ms: number,
): Promise<number> {
  const replies = await Promise.all(
    processes.map((child) => {
      const reply = nextMessage(child);
      tell(child, { kind: "run", work, ms });
      return reply;
    }),
  );
  const ran = replies.filter((reply): reply is Ran => reply.kind === "ran");
  const start = Math.min(...ran.map(({ startNs }) => startNs));
  const end = Math.max(...ran.map(({ endNs }) => endNs));
  return (ran.reduce((sum, { operations }) => sum + operations, 0) * 1e9) / (end - start);
}

async function stopProcess(child: ChildProcess): Promise<void> {
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  tell(child, { kind: "stop" });
  const code = await ended;
  if (code !== 0) throw new Error(`a transfer process ended with exit code ${code}`);
}

function tell(child: ChildProcess, message: ToProcess): void {
  child.send(message);
}

function nextMessage(child: ChildProcess): Promise<FromProcess> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null, signal: string | null): void => {
      child.off("message", onMessage);
      reject(new Error(`a transfer process ended early (${signal ?? `exit code ${code}`})`));
    };
    const onMessage = (message: unknown): void => {
      child.off("exit", onExit);
      resolve(message as FromProcess);
    };
    child.once("message", onMessage);
    child.once("exit", onExit);
  });
}
