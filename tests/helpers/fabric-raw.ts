/**
 * The other end of a connection as a program that is not Situ, or not a well-behaved one: writes any
 * bytes, makes handshakes with anything wrong in them, and keeps the frames that it gets.
 */

import { connect, type Socket } from "node:net";
import { FrameDecoder, FrameWriter, readError, Scratch } from "../../src/fabric/frames.ts";
import {
  Conversation,
  HELLO,
  type Hello,
  PROOF,
  REFUSED,
  writeHello,
} from "../../src/fabric/tcp/handshake.ts";
import {
  FLAG_ERROR,
  FRAME_HEADER_WORDS,
  FRAME_ID,
  FRAME_KIND,
  Reader,
  type Writer,
} from "../../src/fabric/wire.ts";
import { makeNonce } from "../../src/runtime/secret.ts";
import { CLUSTER, eventually } from "./fabric-tcp.ts";

interface Got {
  readonly kind: number;
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** What a client says of itself, apart from the nonce. */
export const USUAL = { cluster: CLUSTER, role: -1, to: 0, instance: "raw" };

export class RawConnection {
  readonly socket: Socket;
  readonly got: Got[] = [];
  /** The code of the error that it was refused with. */
  refused: string | undefined;
  why: string | undefined;
  isClosed = false;
  readonly #decoder = new FrameDecoder(new Scratch());

  constructor(port: number) {
    this.socket = connect({ host: "127.0.0.1", port, noDelay: true });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.isClosed = true;
    });
    this.socket.on("data", (chunk) => this.#data(chunk));
  }

  frame(
    kind: number,
    id: number,
    body: (out: Writer) => void = () => {},
    configurationId = 1,
  ): Buffer {
    const frames = new FrameWriter();
    body(frames.begin(kind, id, configurationId));
    frames.end();
    const bytes = Buffer.from(frames.out.views.bytes.subarray(0, frames.bytes));
    this.socket.write(bytes);
    return bytes;
  }

  /** As a client would, unless told otherwise. */
  async handshake(options: Partial<Hello> & { secret?: string } = {}): Promise<void> {
    const { secret, ...hello } = options;
    const conversation = new Conversation();
    const bytes = this.frame(HELLO, 0, (out) =>
      writeHello(out, { ...USUAL, nonce: makeNonce(), ...hello }),
    );
    conversation.add(bytes);
    await this.until(1);
    if (this.isOver) return;
    conversation.add(this.got[0].bytes);
    this.frame(PROOF, 0, (out) => conversation.writeProof(out, secret, "connecting"));
    await this.until(2);
  }

  get isOver(): boolean {
    return this.isClosed || this.refused !== undefined;
  }

  /** Until it has got so many frames, or is closed or refused. */
  until(frames: number): Promise<void> {
    return eventually(() => this.got.length >= frames || this.isOver);
  }

  #data(chunk: Buffer): void {
    const decoder = this.#decoder;
    decoder.push(chunk);
    while (decoder.next()) {
      const { views, from, to } = decoder;
      const kind = views.i32[from + FRAME_KIND];
      if (kind === (REFUSED | FLAG_ERROR)) {
        const body = new Reader(views).reset(views, from + FRAME_HEADER_WORDS, to);
        const { code, message } = readError(body);
        this.refused = code;
        this.why = message;
      } else {
        const bytes = views.u8.slice(from * 4, to * 4);
        this.got.push({ kind, id: views.i32[from + FRAME_ID], bytes });
      }
    }
    decoder.keepRest();
  }
}
