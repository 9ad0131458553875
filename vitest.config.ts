import { relative } from "node:path";
import { defineConfig, type TestProjectConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { LONGEST, TIERS } from "./tests/tiers.ts";

/** Long files first, whichever tier they belong to, so that no core is idle at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { cache, config } = this.ctx;
    const rank = ({ project, moduleId }: TestSpecification): number => {
      const path = relative(config.root, moduleId);
      const before = cache.getFileTestResults(`${project.name}:${path}`)?.duration;
      const place = LONGEST.indexOf(path);
      // Each of the longest takes more than all that is not known here.
      return before ?? (place < 0 ? 0 : 100_000 - place);
    };
    return [...files].sort((a, b) => rank(b) - rank(a));
  }
}

const others = Object.values(TIERS).flat();

function tier(
  name: string,
  test: { include: string[]; exclude?: string[]; setupFiles?: string[] },
): TestProjectConfiguration {
  return { extends: true, test: { name, ...test } };
}

export default defineConfig({
  test: {
    projects: [
      tier("unit", {
        include: ["tests/**/*.test.ts"],
        exclude: others,
        setupFiles: ["tests/helpers/unit-setup.ts"],
      }),
      ...Object.entries(TIERS).map(([name, globs]) =>
        tier(name, { include: globs.map((glob) => glob.replace(/\*\*$/, "**/*.test.ts")) }),
      ),
    ],
    pool: "forks",
    // No process and no folder of a test stays behind, however it ends.
    globalSetup: ["tests/helpers/run-setup.ts"],
    setupFiles: ["tests/helpers/file-setup.ts"],
    sequence: { sequencer: LongestFirst },
    // One more than the two cores of the smallest machine: some of the tests only wait.
    maxWorkers: 3,
    // For hangs only: no test may fail because a machine is slow.
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
