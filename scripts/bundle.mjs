// Puts the package into one file. V8 loads an imported constant from its module's cell and checks
// it at each use; inside one module it is folded into the code (docs/decisions/0006).
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const dist = join(dirname(dirname(fileURLToPath(import.meta.url))), "dist");

async function bundle(input, file, plugins = [], more = {}) {
  const build = await rolldown({
    ...more,
    input: join(dist, "src", ...input.split("/")),
    external: ["koffi", /^node:/],
    platform: "node",
    optimization: { inlineConst: true },
    plugins,
  });
  await build.write({ file: join(dist, file), format: "esm", sourcemap: true });
  await build.close();
}

/** Builds with another module in place of one; a bundle that does not import it is an error. */
function replaceModule(module, substitute) {
  const [from, to] = [module, substitute].map((name) => join(dist, ...name.split("/")));
  let isReplaced = false;
  return {
    name: "replace-module",
    async resolveId(source, importer, options) {
      const resolved = await this.resolve(source, importer, { ...options, skipSelf: true });
      if (resolved?.id !== from) return undefined;
      isReplaced = true;
      return to;
    },
    buildEnd(error) {
      if (error === undefined && !isReplaced) throw new Error(`nobody imports ${module}`);
    },
  };
}

await bundle("index.js", "situ.js");
// What the threads run that write the log, take checkpoints and recover.
await bundle("log/main.js", "situ-log.js");
// The NIC worker of a node.
await bundle("node/nic-main.js", "situ-nic.js");
// The threads of a gateway that serve clients.
await bundle("gateways/thread-main.js", "situ-gateway.js");
await bundle("cli/main.js", "situ-cli.js");
// What the commands do, loaded when one is run: help and version need none of it.
await bundle("cli/work/command-work.js", "situ-commands.js");
// The package with no versions kept, to measure what they cost (`npm run bench -- snapshots`). Not
// part of the package.
const withoutVersions = replaceModule(
  "src/engine/versioning.js",
  "benchmarks/snapshots/without-versioning.js",
);
await bundle("index.js", "situ-unversioned.js", [withoutVersions]);

// What the tests of processes start, hundreds of times: a script in one file starts in half of the time.
// Not part of the package.
const children = readdirSync(join(dist, "tests", "processes")).filter((name) =>
  /-(child|worker)\.js$/.test(name),
);
// Unlike the package, some of them import a module for what it does to others.
const treeshake = false;
await Promise.all(
  children.map((name) =>
    bundle(`../tests/processes/${name}`, `tests/bundled/${name}`, [], { treeshake }),
  ),
);
