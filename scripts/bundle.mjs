// Puts the package into one file. V8 loads an imported constant from its module's cell and checks
// it at each use; inside one module it is folded into the code (docs/decisions/0006).
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const dist = join(dirname(dirname(fileURLToPath(import.meta.url))), "dist");
const bundle = await rolldown({
  input: join(dist, "src", "index.js"),
  external: ["koffi", /^node:/],
  platform: "node",
  optimization: { inlineConst: true },
});
await bundle.write({ file: join(dist, "situ.js"), format: "esm", sourcemap: true });
await bundle.close();
