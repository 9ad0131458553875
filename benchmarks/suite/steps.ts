// How far a run is and how long it will take, for the one line on the terminal. Steps are weighed
// by what they took before: the time left is measured, not promised.
import type { Progress } from "../harness/progress.ts";

const barCharacters = 24;

export class Steps {
  readonly #progress: Progress;
  readonly #log: (line: string) => void;
  #totalMs: number;
  #doneMs = 0;
  #expectedMs = 0;
  #startedMs = 0;
  readonly #beganMs = performance.now();

  /** `totalMs`: what all steps are expected to take. */
  constructor(progress: Progress, totalMs: number, log: (line: string) => void) {
    this.#progress = progress;
    this.#totalMs = totalMs;
    this.#log = log;
  }

  /** A line that stays, for those who read a log file. */
  say(line: string): void {
    this.#progress.clear();
    this.#log(line);
  }

  begin(text: string, expectedMs = 0): void {
    this.#expectedMs = expectedMs;
    this.#startedMs = performance.now();
    this.#progress.show(`${this.#bar()} ${text}`);
  }

  end(): void {
    this.#doneMs += this.#expectedMs;
  }

  /** Something that was expected will not happen. */
  skip(expectedMs: number): void {
    this.#totalMs -= expectedMs;
  }

  #bar(): string {
    const part = this.#totalMs > 0 ? Math.min(1, this.#doneMs / this.#totalMs) : 0;
    const filled = Math.round(part * barCharacters);
    const bar = "█".repeat(filled) + "░".repeat(barCharacters - filled);
    return `${bar} ${String(Math.round(part * 100)).padStart(3)} % ${this.#left(part)}`;
  }

  #left(part: number): string {
    const elapsedMs = this.#startedMs - this.#beganMs;
    // The plan's own estimate, corrected by how well it has held so far.
    const pace = this.#doneMs > 0 ? elapsedMs / this.#doneMs : 1;
    const leftMs = Math.max(0, this.#totalMs) * (1 - part) * pace;
    const seconds = Math.round(leftMs / 1_000);
    return seconds < 90 ? `${seconds} s left` : `${Math.round(seconds / 60)} min left`;
  }
}
