/** A client that shows the bytes of replies as they came, one reply at a time. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";

export type Argument = string | number | Uint8Array;

/** A request in the form that clients send. */
export function encodeRequest(args: readonly Argument[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${args.length}\r\n`)];
  for (const arg of args) {
    const bytes = typeof arg === "object" ? Buffer.from(arg) : Buffer.from(String(arg), "latin1");
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n"));
  }
  return Buffer.concat(parts);
}

/** Where the reply at `at` ends, or −1 if the rest of it has not come. */
export function replyEnd(bytes: Buffer, at: number): number {
  const lineEnd = bytes.indexOf("\r\n", at);
  if (lineEnd < 0) return -1;
  const next = lineEnd + 2;
  const type = String.fromCharCode(bytes[at]);
  const size = Number(bytes.toString("latin1", at + 1, lineEnd));
  if ("$=!".includes(type)) {
    const end = size < 0 ? next : next + size + 2;
    return end <= bytes.length ? end : -1;
  }
  if (!"*%~>".includes(type) || size < 0) return next;
  let end = next;
  for (let left = type === "%" ? 2 * size : size; left > 0; left--) {
    end = replyEnd(bytes, end);
    if (end < 0) return -1;
  }
  return end;
}

interface Waiting {
  readonly resolve: (reply: Buffer) => void;
  readonly reject: (error: Error) => void;
}

export class RawClient {
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  #received: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the connection was closed")));
  }

  /** By port of this machine, or path of a Unix socket. */
  static async connect(to: number | string): Promise<RawClient> {
    const socket = typeof to === "number" ? connect(to, "127.0.0.1") : connect(to);
    await once(socket, "connect");
    return new RawClient(socket);
  }

  /** The bytes of the reply. */
  async send(...args: Argument[]): Promise<Buffer> {
    const [reply] = await this.sendAll([args]);
    return reply;
  }

  /** The same as text, for replies that are small. */
  async ask(...args: Argument[]): Promise<string> {
    return (await this.send(...args)).toString("latin1");
  }

  /** Sends all requests at once. */
  sendAll(requests: readonly (readonly Argument[])[]): Promise<Buffer[]> {
    return this.write(Buffer.concat(requests.map(encodeRequest)), requests.length);
  }

  /** Sends bytes, and waits for so many replies. */
  write(bytes: Uint8Array, replies: number): Promise<Buffer[]> {
    const promises = Array.from(
      { length: replies },
      () =>
        new Promise<Buffer>((resolve, reject) => {
          this.#waiting.push({ resolve, reject });
        }),
    );
    this.#socket.write(bytes);
    return Promise.all(promises);
  }

  /** Resolves when the other side has closed the connection. */
  async closed(): Promise<void> {
    if (!this.#socket.destroyed) await once(this.#socket, "close");
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    let at = 0;
    while (at < this.#received.length) {
      const end = replyEnd(this.#received, at);
      if (end < 0) break;
      this.#waiting.shift()?.resolve(Buffer.from(this.#received.subarray(at, end)));
      at = end;
    }
    this.#received = this.#received.subarray(at);
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
