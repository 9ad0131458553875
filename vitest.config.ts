import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    pool: "forks",
    // No process and no folder of a test stays behind, however it ends.
    globalSetup: ["tests/helpers/run-setup.ts"],
    setupFiles: ["tests/helpers/file-setup.ts"],
    // Several tests start processes of their own; more files at once than cores only adds noise.
    maxWorkers: 2,
    // For hangs only: no test may fail because a machine is slow.
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
