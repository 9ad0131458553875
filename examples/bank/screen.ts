/** What a person sees: one progress line, events above it, and the result as a table. */

const out = process.stdout;
const isTerminal = out.isTTY === true;
const isColoured = isTerminal && !process.env.NO_COLOR && process.env.TERM !== "dumb";
const BAR = 12;

const paint =
  (code: number) =>
  (text: string): string =>
    isColoured ? `\x1b[${code}m${text}\x1b[0m` : text;
export const bold = paint(1);
export const dim = paint(2);
const red = paint(31);
const green = paint(32);
export const yellow = paint(33);

export const count = (value: number | bigint): string => value.toLocaleString("en-US");
export const clock = (seconds: number): string => `${seconds.toFixed(1).padStart(5)} s`;

export function line(text = ""): void {
  clearProgress();
  out.write(`${text}\n`);
}

export function clearProgress(): void {
  if (isTerminal) out.write("\r\x1b[2K");
}

/** How often to show progress: a terminal can rewrite its line, a log file only grows. */
export const PROGRESS_MS = isTerminal ? 100 : 1_000;

export function progress(seconds: number, part: number, text: string): void {
  if (!isTerminal) {
    out.write(`${clock(seconds)}  ${text}\n`);
    return;
  }
  const full = Math.min(BAR, Math.round(part * BAR));
  const bar = `${"━".repeat(full)}${dim("─".repeat(BAR - full))}`;
  // A line that wraps could not be rewritten.
  const room = Math.max(0, (out.columns || 80) - BAR - 12);
  out.write(`\r\x1b[2K${clock(seconds)}  ${bar}  ${text.slice(0, room)}`);
}

export function verdict(holds: boolean, what: string, how: string): void {
  line(`  ${holds ? green("✓") : red("✗")} ${what.padEnd(28)}${dim(how)}`);
}

export function failure(text: string): void {
  clearProgress();
  process.stderr.write(`${red(text)}\n`);
}

/** Columns as wide as their longest cell; those whose head starts with a space align right. */
export function showTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((_, i) =>
    Math.max(...[head, ...rows].map((row) => row[i].trim().length)),
  );
  const cells = (row: readonly string[]): string =>
    row
      .map((cell, i) => {
        const text = cell.trim();
        return head[i].startsWith(" ") ? text.padStart(widths[i]) : text.padEnd(widths[i]);
      })
      .join("   ")
      .trimEnd();
  line(`  ${dim(cells(head))}`);
  for (const row of rows) line(`  ${cells(row)}`);
}
