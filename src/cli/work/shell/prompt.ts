/**
 * The shell at a terminal: lines are read with completion and history, and run one after the
 * other. An error is told and forgotten. Ctrl-C stops the statement that runs, or clears what was
 * typed.
 */

import { basename } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { counted } from "../../../runtime/units.ts";
import { EXIT_OK, failureOf, Interrupted } from "../../failures.ts";
import { complete } from "./complete.ts";
import { HISTORY_LINES, History } from "./history.ts";
import { runLine, type Verdict } from "./run.ts";
import type { ShellSession } from "./session.ts";
import { ChangedError } from "./transaction.ts";
import { splitStatements } from "./words.ts";

export class Prompt {
  readonly #session: ShellSession;
  readonly #signal: AbortSignal;
  readonly #history = new History();
  readonly #readline: Interface;
  readonly #lines: string[] = [];
  /** What has been typed of a statement that is not complete. */
  #begun = "";
  #running: AbortController | undefined;
  #isClosed = false;
  #wake: () => void = () => {};

  constructor(session: ShellSession, signal: AbortSignal) {
    this.#session = session;
    this.#signal = signal;
    const { screen } = session.options;
    this.#readline = createInterface({
      input: process.stdin,
      // Results alone go to a stdout that is not the terminal, or that is to be JSON.
      output: screen.isTerminal && !screen.isJson ? process.stdout : process.stderr,
      terminal: true,
      history: this.#history.load(),
      historySize: HISTORY_LINES,
      removeHistoryDuplicates: true,
      completer: (line: string) => complete(this.#begun + line, session),
    });
  }

  async run(): Promise<number> {
    const { screen, path } = this.#session.options;
    const tables = this.#session.tables.size;
    if (!screen.isJson) {
      screen.note(`${path}: ${tables} ${tables === 1 ? "table" : "tables"}. Type help or exit.`);
    }
    this.#listen();
    try {
      for (;;) {
        this.#ask();
        const line = await this.#next();
        if (line === undefined) return this.#exitCode();
        if ((await this.#take(line)) === "exit") return EXIT_OK;
      }
    } finally {
      this.#readline.close();
      if (this.#session.isInTransaction) screen.note("the open transaction was rolled back");
    }
  }

  #exitCode(): number {
    if (this.#signal.aborted) return failureOf(this.#signal.reason, this.#signal).exitCode;
    // Ctrl-D leaves the cursor behind the prompt.
    this.#session.options.screen.note("");
    return EXIT_OK;
  }

  #listen(): void {
    const readline = this.#readline;
    const session = this.#session;
    readline.on("line", (line) => {
      this.#lines.push(line);
      this.#wake();
    });
    readline.on("close", () => {
      this.#isClosed = true;
      this.#wake();
    });
    readline.on("SIGINT", () => {
      if (this.#running !== undefined) this.#running.abort(new Interrupted("SIGINT"));
      else if (readline.line !== "" || this.#begun !== "") this.#clear();
      else {
        session.options.screen.note("\ntype exit or Ctrl-D to leave");
        this.#ask();
      }
    });
    this.#signal.addEventListener("abort", () => readline.close(), { once: true });
    session.onLost = (error) => {
      session.options.screen.note(`\n${told(error)}`);
      this.#ask();
    };
  }

  #clear(): void {
    this.#begun = "";
    // Ctrl-E, Ctrl-U: to the end, and all before it away.
    this.#readline.write(null, { ctrl: true, name: "e" });
    this.#readline.write(null, { ctrl: true, name: "u" });
    this.#session.options.screen.note("");
    this.#ask();
  }

  #ask(): void {
    if (this.#isClosed) return;
    const name = basename(this.#session.options.path);
    const mark = this.#session.isInTransaction ? "*> " : "> ";
    const prompt = `${name}${mark}`;
    this.#readline.setPrompt(this.#begun === "" ? prompt : "... ".padStart(prompt.length));
    this.#readline.prompt(true);
  }

  async #next(): Promise<string | undefined> {
    while (this.#lines.length === 0) {
      if (this.#isClosed) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#lines.shift();
  }

  async #take(line: string): Promise<Verdict> {
    const { statements, rest } = splitStatements(`${this.#begun}${line}\n`);
    this.#begun = rest;
    this.#history.add(line);
    for (const statement of statements) {
      const running = new AbortController();
      this.#running = running;
      try {
        const signal = AbortSignal.any([running.signal, this.#signal]);
        if ((await runLine(statement, this.#session, signal)) === "exit") return "exit";
      } catch (error) {
        this.#session.options.screen.note(told(error));
        return "go on";
      } finally {
        this.#running = undefined;
      }
    }
    return "go on";
  }
}

/** On one line, but for what a person has to look through. */
function told(error: unknown): string {
  if (error instanceof ChangedError) {
    const all = counted(error.lines.length, "statement");
    return [
      "conflict with another transaction; nothing was changed. Statements with a different result now:",
      ...error.changed.map((line) => `  ${line}`),
      `Check the data and decide again, or type repeat to run the same ${all} again. (${error.code})`,
    ].join("\n");
  }
  const { code, message } = failureOf(error);
  return `${message} (${code})`;
}
