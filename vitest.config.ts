import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin, type TestProjectConfiguration } from "vitest/config";
import { BaseSequencer, type InlineConfig, type TestSpecification } from "vitest/node";
import { isBuilt } from "./scripts/fresh.mjs";
import { compiledModules } from "./tests/compiled-modules.ts";
import { LONGEST, TIERS } from "./tests/tiers.ts";

/**
 * Tier after tier: a process that has run a file runs the next one only if it is of the same tier.
 * Within a tier long files come first, and the tier of the shortest files is the last, so that no core
 * is idle at the end.
 */
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
    const tier = ({ project }: TestSpecification): number => ORDER.indexOf(project.name);
    return [...files].sort((a, b) => tier(a) - tier(b) || rank(b) - rank(a));
  }
}

const ORDER = [
  "nodes",
  "peers",
  "processes",
  "mocked",
  "models",
  "model-steps",
  "unit-steps",
  "unit",
];

const root = fileURLToPath(new URL(".", import.meta.url));
const compiled = isBuilt(root) ? [compiledModules(root)] : [];
const unitSetup = ["tests/helpers/unit-setup.ts"];
const sharedSetup = ["tests/helpers/shared-process-setup.ts"];
/** Set before any module is loaded, and so for all files of a process. */
const steps = { env: { SITU_ATOMICS: "all" }, isolate: false };

function tier(
  name: string,
  globs: readonly string[],
  more: Partial<Pick<InlineConfig, "env" | "exclude" | "isolate" | "setupFiles">> = {},
  plugins: Plugin[] = compiled,
): TestProjectConfiguration {
  const include = globs.map((glob) => glob.replace(/\*\*$/, "**/*.test.ts"));
  const exclude = [...TIERS.mocked, ...TIERS["model-steps"]];
  return { extends: true, plugins, test: { name, include, exclude, ...more } };
}

export default defineConfig({
  test: {
    projects: [
      tier("unit", ["tests/**"], {
        exclude: Object.values(TIERS).flat(),
        setupFiles: [...unitSetup, ...sharedSetup],
        isolate: false,
      }),
      tier("unit-steps", TIERS["unit-steps"], { ...steps, setupFiles: unitSetup }),
      tier("models", TIERS.models, { setupFiles: sharedSetup, isolate: false }),
      tier("model-steps", TIERS["model-steps"], { ...steps, exclude: [] }),
      tier("processes", TIERS.processes),
      tier("peers", TIERS.peers),
      tier("nodes", TIERS.nodes),
      tier("mocked", TIERS.mocked, { exclude: [] }, []),
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
