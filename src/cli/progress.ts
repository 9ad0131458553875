/** One line on a terminal's stderr that says how far long work is; nothing anywhere else. */

import { nowMs } from "../runtime/clock.ts";
import { shownCount, shownSize } from "../runtime/units.ts";
import type { Screen } from "./screen.ts";

const BAR_COLUMNS = 24;
/** Quick enough to look alive, slow enough to cost nothing. */
const REDRAW_MS = 80;
/** Work that is over by then needs no bar. */
const PATIENCE_MS = 200;

/** What the tools of stores tell: bytes of files, or rows of tables. */
export interface ToolProgress {
  readonly file?: string;
  readonly doneBytes?: number;
  readonly totalBytes?: number;
  readonly subject?: string;
  readonly rows?: number;
  readonly phase?: string;
  /** Instead of all that. */
  readonly text?: string;
}

export function progressText(progress: ToolProgress): string {
  const { file, phase, doneBytes = 0, totalBytes = 0, subject, rows, text } = progress;
  if (text !== undefined) return text;
  if (rows !== undefined) return `${subject}: ${shownCount(rows)} rows`;
  const part = totalBytes === 0 ? 0 : Math.min(1, doneBytes / totalBytes);
  const full = Math.round(part * BAR_COLUMNS);
  const bar = `${"━".repeat(full)}${"─".repeat(BAR_COLUMNS - full)}`;
  const percent = `${Math.floor(part * 100)}`.padStart(3);
  const sizes = `${shownSize(doneBytes)} of ${shownSize(totalBytes)}`;
  return `${bar} ${percent} %  ${sizes}  ${file ?? phase ?? ""}`;
}

export class ProgressLine {
  readonly #what: string;
  readonly #isShown: boolean;
  readonly #startMs = nowMs();
  #drawnMs = Number.NEGATIVE_INFINITY;
  #isDrawn = false;

  constructor(screen: Screen, what: string) {
    this.#what = what;
    this.#isShown = screen.isWatched && !screen.isJson;
  }

  readonly show = (progress: ToolProgress): void => {
    const now = nowMs();
    if (!this.#isShown || now - this.#startMs < PATIENCE_MS) return;
    if (now - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = now;
    this.#isDrawn = true;
    // A line that wraps could not be drawn over.
    const room = (process.stderr.columns || 80) - 1;
    const text = `${this.#what}  ${progressText(progress)}`.slice(0, room);
    process.stderr.write(`\r\x1b[2K${text}`);
  };

  /** Before anything else is said. */
  clear(): void {
    if (this.#isDrawn) process.stderr.write("\r\x1b[2K");
    this.#isDrawn = false;
  }
}
