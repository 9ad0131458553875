// A raw connection for loads that redis-benchmark does not know: requests out, replies counted in.
import { once } from "node:events";
import { connect, type Socket } from "node:net";

const carriageReturn = 13;
const dollar = 36;
const asterisk = 42;
const minus = 45;

export function request(...args: readonly string[]): Buffer {
  const parts = args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`);
  return Buffer.from(`*${args.length}\r\n${parts.join("")}`);
}

/** Where the reply at `at` ends, or -1 if it is not all there. */
function endOfReply(bytes: Buffer, at: number): number {
  const line = bytes.indexOf(carriageReturn, at);
  if (line < 0 || line + 1 >= bytes.length) return -1;
  const after = line + 2;
  if (bytes[at] !== dollar && bytes[at] !== asterisk) return after;
  const count = Number(bytes.toString("latin1", at + 1, line));
  if (bytes[at] === dollar) {
    const end = count < 0 ? after : after + count + 2;
    return end <= bytes.length ? end : -1;
  }
  let end = after;
  for (let i = 0; i < count && end >= 0; i++) end = endOfReply(bytes, end);
  return end;
}

export class Connection {
  readonly #socket: Socket;
  #bytes: Buffer = Buffer.alloc(0);
  #wanted = 0;
  #replies: string[] = [];
  #resolve: ((replies: string[]) => void) | undefined;
  #reject: ((error: Error) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", (error) => this.#reject?.(error));
    socket.on("close", () => this.#reject?.(new Error("the server closed the connection")));
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return new Connection(socket);
  }

  /** Sends requests at once, and resolves with their replies as they came, each as text. */
  ask(requests: Buffer, replies: number): Promise<string[]> {
    this.#wanted = replies;
    this.#replies = [];
    this.#socket.write(requests);
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  close(): void {
    this.#reject = undefined;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    let at = 0;
    while (this.#replies.length < this.#wanted && at < this.#bytes.length) {
      const end = endOfReply(this.#bytes, at);
      if (end < 0) break;
      if (this.#bytes[at] === minus) {
        this.#reject?.(new Error(this.#bytes.toString("latin1", at, end)));
        return;
      }
      this.#replies.push(this.#bytes.toString("latin1", at, end));
      at = end;
    }
    this.#bytes = this.#bytes.subarray(at);
    if (this.#replies.length === this.#wanted) this.#resolve?.(this.#replies);
  }
}
