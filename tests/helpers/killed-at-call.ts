/**
 * For a child process (store-workers.ts): code that counts its calls of the file system and kills the process at
 * one of them. It reads `at`, `changes` (names of calls) and `script` from its data, and leaves the count in `calls`.
 */

export const KILLED_AT_CALL = `
  const { createRequire, syncBuiltinESMExports } = await import("node:module");
  const fs = createRequire(data.script)("node:fs");
  let calls = 0;
  for (const name of data.changes) {
    const real = fs[name];
    fs[name] = (...args) => {
      if (calls++ === data.at) process.kill(process.pid, "SIGKILL");
      return real(...args);
    };
  }
  syncBuiltinESMExports();`;
