/**
 * A process that is stopped in a commit holds the lock of a key. Clients that ask for that key get an
 * error that names it, and clients of the same thread that ask for others are served meanwhile.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { stateOf, until } from "../helpers/engine-processes.ts";
import { endAll, enter, newFolder, startGateway } from "./gateways.ts";

const script = fileURLToPath(
  new URL("../../dist/tests/gateways/redis/stopped-process.js", import.meta.url),
);
let child: ChildProcess | undefined;

afterEach(async () => {
  child?.kill("SIGKILL");
  child = undefined;
  await endAll();
});

test("others are served while a key is locked by a stopped process", async () => {
  const path = join(newFolder(), "store");
  const gateway = await startGateway({ path, threads: 1, durability: "none" });
  const [blocked, other] = [await enter(gateway), await enter(gateway)];
  await blocked.ask("SET", "locked", "1");
  await other.ask("SET", "free", "1");

  child = spawn(process.execPath, [script, path, "locked"], { stdio: "inherit" });
  const { pid } = child;
  const ended = new Promise<number | null>((resolve) => child?.on("exit", resolve));
  await until("the process has stopped itself", () => stateOf(pid!) === "T", 60_000);

  // Had each of them to wait for half a second, this would take longer than the test may.
  const requests = Array.from({ length: 400 }, (_, i) =>
    i % 2 === 0 ? ["GET", "locked"] : ["SET", "locked", "2"],
  );
  const replies = blocked.sendAll(requests);
  let isAnswered = false;
  void replies.then(() => {
    isAnswered = true;
  });
  while (!isAnswered) expect(await other.ask("GET", "free")).toBe("$1\r\n1\r\n");
  for (const reply of await replies) expect(reply.toString()).toContain(`process ${pid} `);

  child.kill("SIGCONT");
  expect(await ended).toBe(0);
  expect(await blocked.ask("GET", "locked")).toContain("from the other process");
});
