// The little of PostgreSQL's protocol 3.0 that a bench needs: simple queries, one after the other,
// over a unix socket that trusts everybody. The peers' packages hold no client, and starting psql
// takes longer than what is measured here.
//
// A message is a letter, the length of what follows with itself (big-endian), and that. The first
// one, by which the client says who it is, has no letter.
import { once } from "node:events";
import { connect, type Socket } from "node:net";

const protocolVersion = 0x30000;
const headerBytes = 5;

/** With the five characters by which PostgreSQL tells errors apart. */
export class PostgresError extends Error {
  readonly code: string;

  constructor(message: string, code: string) {
    super(`postgres: ${message}`);
    this.code = code;
  }
}

/** What one query gave: rows of columns as text. */
export type TextRows = readonly (readonly string[])[];

interface Waiting {
  resolve(rows: TextRows): void;
  reject(error: Error): void;
}

export class PostgresClient {
  readonly #socket: Socket;
  #unread: Buffer = Buffer.alloc(0);
  #waiting: Waiting | undefined;
  #rows: string[][] = [];
  #error: PostgresError | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(this.#error ?? new Error("postgres hung up")));
  }

  static async connect(socketFile: string, user: string): Promise<PostgresClient> {
    const socket = connect(socketFile);
    await once(socket, "connect");
    const client = new PostgresClient(socket);
    const ready = client.#reply();
    const parameters = `user\0${user}\0database\0postgres\0\0`;
    const head = Buffer.alloc(8);
    head.writeInt32BE(head.length + parameters.length, 0);
    head.writeInt32BE(protocolVersion, 4);
    socket.write(Buffer.concat([head, Buffer.from(parameters)]));
    await ready;
    return client;
  }

  /** Several statements may stand in it; the rows of all of them come together. */
  query(sql: string): Promise<TextRows> {
    const reply = this.#reply();
    this.#socket.write(message("Q", Buffer.from(`${sql}\0`)));
    return reply;
  }

  async close(): Promise<void> {
    if (this.#socket.destroyed) return;
    const closed = once(this.#socket, "close");
    this.#socket.end(message("X", Buffer.alloc(0)));
    await closed;
  }

  #reply(): Promise<TextRows> {
    if (this.#waiting !== undefined) throw new Error("postgres: one query at a time");
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  #receive(chunk: Buffer): void {
    let bytes = Buffer.concat([this.#unread, chunk]);
    while (bytes.length >= headerBytes) {
      const end = 1 + bytes.readInt32BE(1);
      if (bytes.length < end) break;
      this.#handle(String.fromCharCode(bytes[0]), bytes.subarray(headerBytes, end));
      bytes = bytes.subarray(end);
    }
    this.#unread = bytes;
  }

  #handle(type: string, body: Buffer): void {
    if (type === "D") this.#rows.push(columnsOf(body));
    else if (type === "E") this.#error = errorOf(body);
    else if (type === "R" && body.readInt32BE(0) !== 0) {
      this.#fail(new Error("postgres asks for a password"));
    } else if (type === "Z") this.#ready();
    // The others are notices, names of columns and the like.
  }

  /** The server waits for the next query: all of the last one has arrived. */
  #ready(): void {
    const { resolve, reject } = this.#waiting ?? {};
    const error = this.#error;
    const rows = this.#rows;
    this.#waiting = undefined;
    this.#error = undefined;
    this.#rows = [];
    if (error === undefined) resolve?.(rows);
    else reject?.(error);
  }

  #fail(error: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#socket.destroy();
    waiting?.reject(error);
  }
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(headerBytes);
  head.write(type, 0, "latin1");
  head.writeInt32BE(headerBytes - 1 + body.length, 1);
  return Buffer.concat([head, body]);
}

/** A count, then each column with its length before it; a length of -1 is NULL. */
function columnsOf(body: Buffer): string[] {
  const columns: string[] = [];
  let at = 2;
  for (let column = body.readInt16BE(0); column > 0; column--) {
    const bytes = body.readInt32BE(at);
    at += 4;
    columns.push(bytes < 0 ? "" : body.toString("utf8", at, at + bytes));
    at += Math.max(0, bytes);
  }
  return columns;
}

/** Texts that end in a zero byte, each with a letter before it that says what it is. */
function errorOf(body: Buffer): PostgresError {
  const fields = new Map(
    body
      .toString("utf8")
      .split("\0")
      .filter((field) => field !== "")
      .map((field) => [field[0], field.slice(1)]),
  );
  return new PostgresError(fields.get("M") ?? "an error", fields.get("C") ?? "XX000");
}
