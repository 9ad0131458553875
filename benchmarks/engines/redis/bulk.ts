// Mass insertion as Redis's manual advises it: the protocol itself, written in large pieces, and
// answers that are only counted. A client's own pipelines take ten times as long to fill.
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** What rows are put by; each command is answered by one line. */
export interface RowWriter {
  set(key: string, value: string): void;
  hset(key: string, ...fieldsAndValues: string[]): void;
  zadd(key: string, score: number, member: string): void;
}

const pieceCharacters = 1 << 18;
const newLine = 10;

export class BulkWriter implements RowWriter {
  readonly #socket: Socket;
  #text = "";
  #awaited = 0;
  #failure: Error | undefined;
  #finish: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (answers: Buffer) => this.#count(answers));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("redis hung up")));
  }

  static async open(socketFile: string): Promise<BulkWriter> {
    const socket = connect(socketFile);
    await once(socket, "connect");
    return new BulkWriter(socket);
  }

  set(key: string, value: string): void {
    this.#add(["SET", key, value]);
  }

  hset(key: string, ...fieldsAndValues: string[]): void {
    this.#add(["HSET", key, ...fieldsAndValues]);
  }

  zadd(key: string, score: number, member: string): void {
    this.#add(["ZADD", key, String(score), member]);
  }

  get isFull(): boolean {
    return this.#text.length >= pieceCharacters;
  }

  /** Resolves when all of it is on its way. */
  send(): Promise<void> {
    const text = this.#text;
    this.#text = "";
    return new Promise((resolve, reject) => {
      this.#socket.write(text, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Resolves when everything has been answered. */
  async close(): Promise<void> {
    await this.send();
    await new Promise<void>((resolve) => {
      this.#finish = resolve;
      this.#finishIfDone();
    });
    const failure = this.#failure;
    this.#socket.destroy();
    if (failure !== undefined) throw failure;
  }

  #add(parts: readonly string[]): void {
    this.#text += `*${parts.length}\r\n`;
    for (const part of parts) this.#text += `$${Buffer.byteLength(part)}\r\n${part}\r\n`;
    this.#awaited++;
  }

  #count(answers: Buffer): void {
    for (const byte of answers) if (byte === newLine) this.#awaited--;
    // "+OK" and ":1" hold no minus: one is the beginning of an error.
    if (answers.includes("-")) this.#fail(new Error(`redis: ${answers.toString()}`));
    this.#finishIfDone();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#finishIfDone();
  }

  #finishIfDone(): void {
    if (this.#awaited === 0 || this.#failure !== undefined) this.#finish?.();
  }
}
