/** Where the bundled scripts of threads are: beside the package's own, wherever this code runs from. */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { SituError } from "./errors.ts";

/** Seen from the bundle, from the compiled source, and from the source. */
const PLACES = [".", "../..", "../../dist"];

export function threadScript(name: string): string {
  refuseBundled();
  for (const place of PLACES) {
    const file = fileURLToPath(new URL(`${place}/${name}`, import.meta.url));
    if (existsSync(file)) return file;
  }
  throw bundled(`${name} is not beside the package's files`);
}

/** In a bundle that is no module, this code does not know where it is, and finds nothing. */
export function refuseBundled(): void {
  const place = import.meta.url as string | undefined;
  if (place === undefined) throw bundled("it cannot tell where its files are");
}

function bundled(why: string): SituError {
  return new SituError(
    "SITU_UNSUPPORTED",
    `Situ seems to be part of a bundle: ${why}. Its threads need the files of the package, so leave it ` +
      `out of the bundle: esbuild --external:situ --external:koffi, or externals of your bundler`,
  );
}
