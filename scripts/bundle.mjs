// Puts the package into a few files. V8 loads an imported constant from its module's cell and checks
// it at each use; inside one module it is folded into the code (docs/decisions/0006). What opening a store
// does not need is in files of its own, loaded by the first call that needs it.
//
// No comments, and ASCII only: V8 reads all of a file when it is imported, and keeps a text with one other
// character in it at twice the size.
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const dist = join(dirname(dirname(fileURLToPath(import.meta.url))), "dist");

const OUTPUT = {
  format: "esm",
  sourcemap: true,
  comments: false,
  minify: {
    compress: false,
    mangle: false,
    codegen: { removeWhitespace: false, asciiOnly: true },
  },
};

async function bundle(input, file, plugins = [], more = {}) {
  const build = await rolldown({ ...inputOf(input, [importAtOnce(), ...plugins]), ...more });
  const { output } = await build.generate({
    ...OUTPUT,
    file: join(dist, file),
    codeSplitting: false,
  });
  await build.close();
  checkAtOnce(file, output[0].code);
  put(output, dirname(file));
}

/**
 * In a single file nothing can be loaded later. Left to itself, rolldown puts every module that an `import()` reaches,
 * which is most of them, into a function that runs on demand: its constants become variables, which V8 does not
 * fold into the code, and each use of a class checks that it is there.
 */
function importAtOnce() {
  const later = /(?<![\w$.])import\("(\.[^"]+\.js)"\)/g;
  return {
    name: "import-at-once",
    transform(code) {
      const imports = [];
      const changed = code.replace(later, (_, path) => {
        const name = `imported_at_once_${imports.length}`;
        imports.push(`import * as ${name} from "${path}";`);
        return `Promise.resolve(${name})`;
      });
      // Behind the code: lines stay where they are for the source map, and what the module itself needs is run first.
      return imports.length === 0 ? null : { code: `${changed}\n${imports.join("\n")}`, map: null };
    },
  };
}

/** Fails if some modules of a bundle run on demand all the same. */
function checkAtOnce(file, code) {
  if (code.includes("= __esmMin("))
    throw new Error(`${file}: modules run on demand, see importAtOnce`);
}

/**
 * Puts each file in the place of the old one as a whole. A process that starts while the project is being
 * built gets one of the two, never the beginning of one: an empty script ends without an error.
 */
function put(output, folder) {
  for (const { fileName, code, source } of output) {
    const path = join(dist, folder, fileName);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.${process.pid}`, code ?? source);
    renameSync(`${path}.${process.pid}`, path);
  }
}

function inputOf(input, plugins) {
  return {
    input: join(dist, "src", ...input.split("/")),
    external: ["koffi", /^node:/],
    platform: "node",
    optimization: { inlineConst: true },
    plugins,
  };
}

/** What opening a store needs, in one file, with the hot paths. */
const CORE = "situ-core";
/** What it loads later, by the modules that it imports dynamically. */
const LATER = [
  { name: "situ-remote", entries: ["database/remote/connect.js"] },
  { name: "situ-gateways", entries: ["gateways/serve.js", "gateways/metrics/endpoint.js"] },
  // The tools, recovery, and what several of these need.
  { name: "situ-tools", entries: [] },
];

async function bundlePackage() {
  let exported;
  const build = await rolldown({
    ...inputOf("index.js", [keepCellsPrivate()]),
    // The core exports to the other files what users do not get to see: situ.js passes the rest on.
    preserveEntrySignatures: "allow-extension",
  });
  const reached = new Map();
  const all = (entry, graph) => {
    if (!reached.has(entry)) reached.set(entry, reachableFrom(entry, graph));
    return reached.get(entry);
  };
  const source = (file) => join(dist, "src", ...file.split("/"));
  const nameOf = (id, graph) => {
    exported ??= graph.getModuleInfo(source("index.js")).exports;
    if (all(source("index.js"), graph).has(id)) return CORE;
    const needing = LATER.filter(({ entries }) =>
      entries.some((file) => all(source(file), graph).has(id)),
    );
    return needing.length === 1 ? needing[0].name : LATER.at(-1).name;
  };
  const { output } = await build.generate({
    ...OUTPUT,
    dir: dist,
    entryFileNames: `${CORE}.js`,
    chunkFileNames: "[name].js",
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ name: nameOf, debugName: "by need" }],
    },
  });
  await build.close();
  put(output, ".");
  const expected = [CORE, ...LATER.map(({ name }) => name)].map((name) => `${name}.js`);
  const files = output.filter(({ type }) => type === "chunk").map(({ fileName }) => fileName);
  if (files.sort().join() !== expected.sort().join()) {
    throw new Error(`the package is in ${files.join()}, not in ${expected.join()}`);
  }
  writeFileSync(
    join(dist, "situ.js"),
    `export { ${exported.toSorted().join(", ")} } from "./${CORE}.js";\n`,
  );
}

/** A module and all that it imports, without what it loads later. */
function reachableFrom(entry, graph) {
  const seen = new Set([entry]);
  for (const id of seen) {
    for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) seen.add(imported);
  }
  return seen;
}

/**
 * A variable that a module exports is read from a cell by the module itself, too. So what the other files
 * need of the core is exported under second names, which the core does not use.
 */
function keepCellsPrivate() {
  const list = /\nexport \{ ([^}]*) \};\s*$/;
  return {
    name: "keep-cells-private",
    renderChunk(code, chunk) {
      if (!chunk.isEntry) return undefined;
      const exported = list.exec(code)?.[1];
      if (exported === undefined) throw new Error(`${CORE} does not end in its exports`);
      const pairs = exported.split(", ").map((each) => each.split(" as "));
      const second = pairs.map(([local], i) => `export_${i} = ${local}`).join(", ");
      const names = pairs.map(([local, name = local], i) => `export_${i} as ${name}`).join(", ");
      // A function: names may contain what `replace` takes for a pattern.
      const changed = code.replace(list, () => `\nconst ${second};\nexport { ${names} };\n`);
      return { code: changed, map: null };
    },
  };
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

/**
 * Types for CommonJS. Node.js can `require` the package as it is, but a compiler that thinks of older
 * ones refuses to import the types of a module there. So this file has the same names, for values and
 * for types, and says of each that it is the module's.
 */
async function writeCommonJsTypes() {
  const from = `"./src/index.js"`;
  const mode = `with { "resolution-mode": "import" }`;
  const declarations = readFileSync(join(dist, "src", "index.d.ts"), "utf8");
  const types = [...declarations.matchAll(/export (type )?\{([^}]*)\}/g)].flatMap(
    ([, isType, names]) =>
      names
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== "" && (isType !== undefined || name.startsWith("type ")))
        .map((name) => name.replace(/^type /, "")),
  );
  const module = `import(${from}, { ${mode.replace("with", "with:")} })`;
  const values = Object.entries(await import(join(dist, "situ.js"))).map(([name, value]) => {
    const isClass = /^class\b/.test(String(value));
    const type = isClass ? `type ${name} = ${module}.${name};\n` : "";
    return `declare const ${name}: typeof ${module}.${name};\n${type}export { ${name} };\n`;
  });
  const text = `export type { ${types.sort().join(", ")} } from ${from} ${mode};\n${values.join("")}`;
  writeFileSync(join(dist, "situ.d.cts"), text);
}

/** Typed arrays have a parameter since TypeScript 5.7: an older compiler would stumble over it. */
function simplifyTypes(folder) {
  const generic =
    /\b((?:Ui|I)nt\w*Array|Float64Array|BigU?[Ii]nt64Array|Buffer)<(?:Shared)?ArrayBuffer(?:Like)?>/g;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.name.endsWith(".d.ts")) continue;
    const file = join(entry.parentPath, entry.name);
    const text = readFileSync(file, "utf8");
    const simple = text.replace(generic, "$1");
    if (simple !== text) writeFileSync(file, simple);
  }
}

await bundlePackage();
simplifyTypes(join(dist, "src"));
await writeCommonJsTypes();
// What the threads run that write the log, take checkpoints and recover.
await bundle("log/main.js", "situ-log.js");
// The threads of the device.
await bundle("tables/device/elements/element-main.js", "situ-device.js");
// The NIC worker of a node.
await bundle("node/nic-main.js", "situ-nic.js");
// And the thread that keeps its leases.
await bundle("node/lease-main.js", "situ-lease.js");
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
