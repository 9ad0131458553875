/**
 * What a test file or a benchmark has started and made is gone after it, however it ends: the test
 * of the guard that every test relies on (benchmarks/harness/guard/).
 */

import { existsSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { OWNER_VARIABLE } from "../../benchmarks/harness/guard/owned.ts";
import { endAll, stateOf, until } from "../helpers/engine-processes.ts";
import { Talker } from "../helpers/process-group.ts";

afterAll(endAll);

interface Told {
  readonly pid: number;
  readonly disk: string;
  readonly memory: string;
  readonly run: string;
}

test.each(["SIGKILL", "SIGINT", "SIGTERM"] as const)(
  "an owner ends by %s: its stopped, orphaned process and its folders go with it",
  async (signal) => {
    // Not of this file: a run of its own.
    const env = { [OWNER_VARIABLE]: undefined, GUARD_RUN: undefined };
    const owner = new Talker("guarded-child", {}, env);
    await until("what it owns", () => owner.lines.length > 0 || owner.ended, 60_000);
    const { pid, disk, memory, run } = JSON.parse(owner.lines[0]) as Told;
    await until("it is stopped", () => stateOf(pid) === "T", 60_000);
    for (const folder of [disk, memory, run]) expect(existsSync(folder), folder).toBe(true);

    owner.running.child.kill(signal);
    expect((await owner.running.ended).signal).toBe(signal);
    await until("its process has ended", () => stateOf(pid) === "", 60_000);
    await until("its folders are gone", () => !existsSync(run), 60_000);
    for (const folder of [disk, memory]) expect(existsSync(folder), folder).toBe(false);
  },
);
