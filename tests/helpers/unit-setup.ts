/**
 * Runs before each file of the tier `unit`: nothing there starts a process or listens. A test that
 * does belongs to another tier (tests/tiers.ts).
 */

import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { Server } from "node:net";

function refuse(what: string): () => never {
  return () => {
    throw new Error(`${what} in a unit test: name the file in tests/tiers.ts`);
  };
}

const starters = ["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"];
for (const name of starters) Object.assign(childProcess, { [name]: refuse(`${name}()`) });
syncBuiltinESMExports();
Server.prototype.listen = refuse("listen()");
