/**
 * Where the words of a command go. Results go to stdout, all else to stderr, so that a pipe gets
 * nothing but results. Colours only on a terminal that wants them (no-color.org).
 */

/** JSON has neither big integers nor bytes: they become decimal digits and 0x… */
export function toJson(value: unknown): string {
  return JSON.stringify(value, function (this: Record<string, unknown>, name, each: unknown) {
    if (typeof each === "bigint") return String(each);
    // Not `each`: a Buffer has turned itself into something else by then.
    const raw = this[name];
    return raw instanceof Uint8Array ? `0x${Buffer.from(raw).toString("hex")}` : each;
  });
}

type Paint = (text: string) => string;

const DEFAULT_COLUMNS = 80;

export class Screen {
  readonly isJson: boolean;
  /** Whether a person looks at the results. */
  readonly isTerminal = process.stdout.isTTY === true;
  /** Whether a person looks at what is told beside them. */
  readonly isWatched = process.stderr.isTTY === true;
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;

  constructor(isJson: boolean) {
    this.isJson = isJson;
    const { NO_COLOR, TERM } = process.env;
    const isColoured = this.isTerminal && !isJson && !NO_COLOR && TERM !== "dumb";
    const paint =
      (code: number): Paint =>
      (text) =>
        isColoured && text !== "" ? `\x1b[${code}m${text}\x1b[0m` : text;
    this.bold = paint(1);
    this.dim = paint(2);
    this.red = paint(31);
    this.green = paint(32);
    this.yellow = paint(33);
  }

  /** Room for a line: what goes to a file or a pipe is not cut. */
  get columns(): number {
    if (!this.isTerminal) return Number.POSITIVE_INFINITY;
    return process.stdout.columns || DEFAULT_COLUMNS;
  }

  /** A result for people: not with --json. */
  line(text = ""): void {
    if (!this.isJson) process.stdout.write(`${text}\n`);
  }

  /** A result for programs: only with --json. */
  json(value: unknown): void {
    if (this.isJson) process.stdout.write(`${toJson(value)}\n`);
  }

  /** Something beside the results. */
  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  /** Waits for whoever reads: results of any length need no more memory for it. */
  async drained(): Promise<void> {
    if (!process.stdout.writableNeedDrain) return;
    await new Promise<void>((resolve) => process.stdout.once("drain", resolve));
  }
}
