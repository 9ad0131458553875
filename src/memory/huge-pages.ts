/**
 * Memory in pages of 2 MiB instead of 4 KiB, where the system gives them. Random reads of a large table spend
 * a good part of their time on finding pages: with large ones there are 512 times fewer to find, for every
 * process that maps the store, and a new region costs one fault for 2 MiB instead of 512.
 *
 * Files on a tmpfs get small pages, as most systems are set up (`shmem_enabled` is "never"). But who has mapped such a file
 * may ask Linux, from 6.1 on, to make a large page of a range: MADV_COLLAPSE. Three things are needed:
 *
 *   - the mapping begins at a multiple of the large page (libc.ts maps so);
 *   - the range has a page at least: so one byte of each is written first. More of them would have to be copied;
 *   - Linux has a large page left. It may look for one and give up, and so may we: the first refusal, or too
 *     long a time, is the end of the attempt, and the rest of the file gets small pages.
 *
 * A creator whose event loop should turn has little time. What is left then becomes large later, some pages at a time
 * (`Segment.improve`): that copies what is in them, but holds nobody up for long.
 *
 * Nothing depends on the outcome. The pages belong to the file: whoever maps it later finds them large.
 */

import { readFileSync, writeSync } from "node:fs";
import { nowMs } from "../runtime/clock.ts";
import { HUGE_PAGES_MS, MAX_HUGE_PAGE_BYTES } from "../runtime/limits.ts";

const SIZE_FILE = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
const ZERO = new Uint8Array(1);
/** What is asked for at once: each call also waits for all processors for a moment. */
const PIECE_BYTES = 8 * MAX_HUGE_PAGE_BYTES;
/** The same for one who has little time: on a machine that has to look for large pages each takes milliseconds. */
const SHORT_PIECE_BYTES = MAX_HUGE_PAGE_BYTES;

let known: number | undefined;

/** The size of a large page; 0 where there is none, or one so large that memory would be wasted. */
export function hugePageBytes(): number {
  known ??= readSize();
  return known;
}

/** So many of the bytes fill large pages. */
export function wholePages(bytes: number): number {
  return hugePageBytes() === 0 ? 0 : bytes - (bytes % hugePageBytes());
}

function readSize(): number {
  if (process.platform !== "linux") return 0;
  try {
    const bytes = Number(readFileSync(SIZE_FILE, "utf8"));
    return Number.isSafeInteger(bytes) && bytes > 0 && bytes <= MAX_HUGE_PAGE_BYTES ? bytes : 0;
  } catch {
    return 0;
  }
}

/**
 * Gives large pages to the first `bytes` of a new file, as far as they fill such pages. `collapse` asks for one
 * range of the mapping and says whether it was granted. Returns how many bytes have got them.
 */
export function fillWithHugePages(
  fd: number,
  bytes: number,
  collapse: (offset: number, bytes: number) => boolean,
  patienceMs = HUGE_PAGES_MS,
): number {
  const pageBytes = hugePageBytes();
  if (pageBytes === 0) return 0;
  const endMs = nowMs() + patienceMs;
  const pieceBytes = patienceMs < HUGE_PAGES_MS ? SHORT_PIECE_BYTES : PIECE_BYTES;
  const whole = wholePages(bytes);
  let done = 0;
  while (done < whole && nowMs() < endMs) {
    const end = Math.min(done + pieceBytes, whole);
    try {
      for (let at = done; at < end; at += pageBytes) writeSync(fd, ZERO, 0, 1, at);
    } catch {
      // No room: whoever reserves the rest of the file will say so.
      break;
    }
    if (!collapse(done, end - done)) break;
    done = end;
  }
  return done;
}
