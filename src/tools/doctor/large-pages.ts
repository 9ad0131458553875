/** Whether a store's memory gets large pages in a folder: asked for as a store does (memory/huge-pages.ts). */

import { closeSync, ftruncateSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fillWithHugePages, hugePageBytes } from "../../memory/huge-pages.ts";
import { libc } from "../../memory/libc.ts";
import { uniqueId } from "../../runtime/random.ts";
import { shownSize } from "../../runtime/units.ts";
import { type Finding, ok, warning } from "./finding.ts";

const SETTING = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

export function checkLargePages(folder: string): Finding {
  const check = "large pages";
  const bytes = hugePageBytes();
  if (bytes === 0) return ok(check, "this system has none");
  const file = join(folder, `situ-doctor-${uniqueId()}.pages`);
  let fd = -1;
  try {
    fd = openSync(file, "w+", 0o600);
    ftruncateSync(fd, bytes);
    const mapping = libc().map(fd, bytes);
    const given = fillWithHugePages(fd, bytes, mapping.collapse);
    mapping.unmap();
    if (given > 0) return ok(check, `${shownSize(bytes)} each in ${folder}`);
    const advice =
      `random reads of large tables are slower without: use Linux 6.1 or newer and a tmpfs, and if ${SETTING} ` +
      `says [deny], write "never" or "advise" to it`;
    return warning(check, `not given in ${folder}`, advice);
  } catch (error) {
    return warning(check, (error as Error).message, `see whether ${folder} can be written to`);
  } finally {
    if (fd >= 0) {
      closeSync(fd);
      rmSync(file, { force: true });
    }
  }
}
