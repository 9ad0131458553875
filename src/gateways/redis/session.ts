/**
 * One client's connection: what comes is decoded and answered in order (conversation.ts), and the
 * replies to all that came together leave together; in `sync` when it is on disk.
 *
 * Nothing a client does makes this grow without bound: requests, queued commands and replies have
 * limits, and while replies wait for the client to take them, its requests wait, too.
 */

import type { Socket } from "node:net";
import { nowMs, realClock, wallClockMs } from "../../runtime/clock.ts";
import { MAX_WAITING_REPLY_BYTES } from "../../runtime/limits.ts";
import { COUNTER } from "../metrics/command-metrics.ts";
import { Decoder } from "../resp/decoder.ts";
import { OutputLimitError, type Replies } from "../resp/replies.ts";
import type { Peer } from "../threads/wire-protocol.ts";
import { Conversation } from "./conversation.ts";
import type { SessionState } from "./session-state.ts";
import type { RedisThread } from "./thread.ts";

/** How long a client may take to say goodbye when the gateway closes. */
const CLOSE_PATIENCE_MS = 1_000;

export class ClientSession implements SessionState {
  readonly id: number;
  readonly address: string;
  readonly localAddress: string;
  readonly connectedMs = wallClockMs();
  name = "";
  libraryName = "";
  libraryVersion = "";
  protocol: 2 | 3 = 2;
  lastCommand = "NULL";
  lastMs = this.connectedMs;
  readonly #thread: RedisThread;
  readonly #socket: Socket;
  readonly #decoder: Decoder;
  readonly #replies: Replies;
  readonly #conversation: Conversation;
  #isEnding = false;
  #isFinished = false;
  /** Replies wait for the client, or for the disk. */
  #isWaiting = false;
  /** Replies that leave a little later: see `#send`. */
  #unsent: Buffer | undefined;

  constructor(thread: RedisThread, socket: Socket, peer: Peer) {
    this.#thread = thread;
    this.#socket = socket;
    this.id = peer.id;
    this.address = peer.address;
    this.localAddress = peer.localAddress;
    this.#decoder = new Decoder(thread.limits);
    this.#replies = thread.replies;
    this.#conversation = new Conversation(thread, this);
    this.#decoder.authenticated = this.#conversation.isAuthenticated;
  }

  get isAuthenticated(): boolean {
    return this.#conversation.isAuthenticated;
  }

  set isAuthenticated(is: boolean) {
    this.#conversation.isAuthenticated = is;
    this.#decoder.authenticated = is;
  }

  get queued(): number {
    const { isOpen, queue } = this.#conversation.transaction;
    return isOpen ? queue.length : -1;
  }

  get watched(): number {
    return this.#conversation.transaction.watched;
  }

  get inputBytes(): number {
    return this.#decoder.buffered;
  }

  get outputBytes(): number {
    return this.#socket.writableLength;
  }

  closeAfterReply(): void {
    this.#isEnding = true;
  }

  reset(): void {
    this.#conversation.endTransaction();
    this.name = "";
    this.protocol = 2;
    this.#replies.protocol = 2;
    this.isAuthenticated = this.#thread.settings.password === "";
  }

  /** What came from the client. */
  receive(chunk: Buffer): void {
    if (this.#isEnding) return;
    this.#thread.metrics.add(COUNTER.bytesReceived, chunk.length);
    this.#decoder.push(chunk);
    if (!this.#isWaiting) this.#serveAll();
  }

  /** The client has nothing more to say: what it has asked for is answered, and that is all. */
  finished(): void {
    this.#isFinished = true;
    if (!this.#isWaiting) this.#leave();
  }

  #leave(): void {
    this.#isEnding = true;
    this.sendNow();
  }

  /** The client took what waited for it. */
  drained(): void {
    if (!this.#isWaiting || this.#isEnding || this.#conversation.epoch !== 0) return;
    this.#isWaiting = false;
    this.#socket.resume();
    this.#serveAll();
  }

  /** Lets the client have what was answered, and closes; resolves when that is done. */
  end(): Promise<void> {
    const socket = this.#socket;
    this.#isEnding = true;
    if (socket.destroyed) return Promise.resolve();
    // What waits for the disk is sent, and this closed, when it is there.
    if (this.#conversation.epoch === 0) this.sendNow();
    return new Promise((resolve) => {
      const patience = realClock.after(CLOSE_PATIENCE_MS, () => socket.destroy());
      socket.once("close", () => {
        patience.cancel();
        resolve();
      });
    });
  }

  /** Closes at once. */
  destroy(): void {
    this.#isEnding = true;
    this.#socket.destroy();
  }

  #serveAll(): void {
    const thread = this.#thread;
    const decoder = this.#decoder;
    const replies = this.#replies;
    const startMs = nowMs();
    let served = 0;
    thread.keys.nowMs = this.lastMs = wallClockMs();
    replies.protocol = this.protocol;
    try {
      while (!this.#isEnding && decoder.next()) {
        served++;
        if (decoder.isTooLong) this.#conversation.refuseTooLong();
        else this.#conversation.serve(decoder.request);
        if (replies.length < MAX_WAITING_REPLY_BYTES) continue;
        this.#conversation.finish();
        this.#send();
        if (this.#isWaiting) break;
      }
      this.#conversation.finish();
      if (decoder.error !== undefined) {
        replies.error(decoder.error, "latin1");
        this.#isEnding = true;
      }
    } catch (error) {
      thread.batch.clear();
      replies.clear();
      this.#fail(error);
      return;
    }
    thread.metrics.observe(nowMs() - startMs, served);
    this.#send();
    if (this.#isFinished && !this.#isWaiting) this.#leave();
  }

  /** What no reply can tell: the client gets none. */
  #fail(error: unknown): void {
    this.#isEnding = true;
    this.#socket.destroy();
    if (!(error instanceof OutputLimitError)) this.#thread.failed(error);
  }

  /**
   * The replies leave a little later, together with those of other clients: a program that has many
   * connections is then woken once for several of them.
   */
  #send(): void {
    if (this.#isWaiting) return;
    const replies = this.#replies;
    const { length } = replies;
    if (length > 0) {
      this.#thread.metrics.add(COUNTER.bytesSent, length);
      if (this.#conversation.epoch !== 0) {
        this.#sendWhenDurable(replies.take());
        return;
      }
      if (this.#unsent !== undefined) this.sendNow();
      this.#unsent = replies.take();
      if (length < MAX_WAITING_REPLY_BYTES && !this.#isEnding) this.#thread.sendLater(this);
      else this.sendNow();
    } else if (this.#isEnding) {
      this.sendNow();
    }
  }

  /** Sends what `#send` has left. */
  sendNow(): void {
    const bytes = this.#unsent;
    this.#unsent = undefined;
    if (this.#socket.destroyed) return;
    if (bytes !== undefined) this.#socket.write(bytes);
    this.#afterSending();
  }

  #afterSending(): void {
    const { maxOutputBytes } = this.#thread;
    if (this.#isEnding) {
      // Without waiting for the client to close its side, which it may never do; but what waits for
      // the disk is still to be sent.
      if (this.#conversation.epoch === 0) this.#socket.destroySoon();
      return;
    }
    if (this.#socket.writableLength > maxOutputBytes) {
      this.#fail(new OutputLimitError(maxOutputBytes));
      return;
    }
    if (this.#socket.writableLength < Math.min(MAX_WAITING_REPLY_BYTES, maxOutputBytes)) return;
    this.#isWaiting = true;
    this.#socket.pause();
  }

  #sendWhenDurable(bytes: Buffer): void {
    this.#isWaiting = true;
    this.#socket.pause();
    this.#thread.durable(this.#conversation.epoch).then(
      () => {
        this.#conversation.epoch = 0;
        this.#isWaiting = false;
        this.#unsent = this.#unsent === undefined ? bytes : Buffer.concat([this.#unsent, bytes]);
        this.sendNow();
        if (this.#isWaiting || this.#isEnding) return;
        this.#socket.resume();
        this.#serveAll();
      },
      // Whether it is on disk is not known: no reply may say so.
      () => this.destroy(),
    );
  }
}
