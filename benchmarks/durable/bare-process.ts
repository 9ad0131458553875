// A process that writes and syncs, in the way that a commit of Situ's one by one must, and does
// nothing else: no memory, no journal, no checksum, no second thread.
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { NodeFiles } from "../../src/folder/node-files.ts";
import { HEAD_BYTES, SEGMENT_BYTES } from "../../src/runtime/limits.ts";
import { serve, taskOf } from "../harness/process-side.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { runFor, type TimedRun } from "../harness/timed-run.ts";

/** A file with its room reserved, as Situ's segments, or one that grows with each write. */
export type BareFile = "preallocated" | "appended";

export interface BareTask {
  readonly folder: string;
}

export interface RunBare {
  readonly file: BareFile;
  /** In each write. */
  readonly bytes: number;
  readonly ms: number;
}

const { folder } = taskOf<BareTask>();
const name = "bare.log";
const path = join(folder, name);

function run({ file, bytes, ms }: RunBare): TimedRun {
  const files = new NodeFiles(folder);
  files.create(name, file === "preallocated" ? SEGMENT_BYTES : 0).close();
  const fd = openSync(path, "r+");
  try {
    const head = Buffer.alloc(HEAD_BYTES, 1);
    writeSync(fd, head, 0, head.length, 0);
    fdatasyncSync(fd);
    files.syncFolder("");
    return runFor(writeAndSync(fd, Buffer.alloc(bytes, 1)), ms);
  } finally {
    closeSync(fd);
    rmSync(path);
  }
}

function writeAndSync(fd: number, content: Buffer): SyncContestant {
  let at = HEAD_BYTES;
  return {
    name: "write and sync",
    run(operations) {
      for (let done = 0; done < operations; done++) {
        at += writeSync(fd, content, 0, content.length, at);
        fdatasyncSync(fd);
      }
      return at;
    },
  };
}

serve<RunBare, TimedRun>({
  handle: (order, answer) => answer(run(order)),
  close: async () => {},
});
