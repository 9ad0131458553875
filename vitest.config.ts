import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin, type TestProjectConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { isBuilt } from "./scripts/fresh.mjs";
import { compiledModules } from "./tests/compiled-modules.ts";
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

const root = fileURLToPath(new URL(".", import.meta.url));
const compiled = isBuilt(root) ? [compiledModules(root)] : [];
const { alone, mocked, ...others } = TIERS;
const unitSetup = ["tests/helpers/unit-setup.ts"];

function tier(
  name: string,
  globs: readonly string[],
  more: { exclude?: string[]; setupFiles?: string[]; isolate?: boolean; plugins?: Plugin[] } = {},
): TestProjectConfiguration {
  const { plugins = compiled, ...test } = more;
  const include = globs.map((glob) => glob.replace(/\*\*$/, "**/*.test.ts"));
  return { extends: true, plugins, test: { name, include, exclude: [...mocked], ...test } };
}

export default defineConfig({
  test: {
    projects: [
      tier("unit", ["tests/**"], {
        exclude: Object.values(TIERS).flat(),
        setupFiles: [...unitSetup, "tests/helpers/shared-process-setup.ts"],
        // They run one after the other in a few processes, with modules loaded and code compiled.
        isolate: false,
      }),
      tier("alone", alone, { setupFiles: unitSetup }),
      ...Object.entries(others).map(([name, globs]) => tier(name, globs)),
      tier("mocked", mocked, { exclude: [], plugins: [] }),
    ],
    pool: "forks",
    // Node loads what was compiled, as it would for users.
    server: { deps: { external: [/\/dist\//] } },
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
