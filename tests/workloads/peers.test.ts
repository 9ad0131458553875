/** The script that installs the peers: quick when all is there, plain when something cannot be had. */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/peers.mjs", import.meta.url));

function install(env: NodeJS.ProcessEnv): { status: number | null; stderr: string } {
  return spawnSync(process.execPath, [script, "--install"], { encoding: "utf8", env });
}

test("installs nothing twice", () => {
  expect(install(process.env)).toMatchObject({ status: 0, stderr: "" });
});

test("says what could not be installed, and fails", () => {
  const { status, stderr } = install({ ...process.env, PATH: "/nowhere" });
  expect(status).toBe(1);
  expect(stderr).toContain("redis-server 7 (Debian: redis-server)");
  expect(stderr).toContain("Chromium (Debian: chromium)");
});
