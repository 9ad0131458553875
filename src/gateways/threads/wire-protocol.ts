/**
 * What a wire protocol is to the threads that serve it: this folder listens, hands each client to a
 * thread, supervises the threads and stops them; the protocol speaks with the clients. A protocol plugs
 * in by giving an object of this type (redis/protocol.ts) and a script for its worker threads that passes
 * it to `runThread` (thread-main.ts). Options and notices cross threads, so they are plain data.
 */

import type { Socket } from "node:net";
import type { LocalDatabase as Database } from "../../database/local/local-database.ts";

/** Who is at the other end of a connection. */
export interface Peer {
  /** Unique in this gateway. */
  readonly id: number;
  readonly address: string;
  readonly localAddress: string;
}

export interface WireProtocol<Options, Notice> {
  /** What its worker threads run: the name of a file beside the package's own, or a path. */
  readonly script: string;
  /** What a client is sent that is refused because there are too many. */
  readonly tooManyClients: string;
  /** Opens the store: once in each thread that serves clients, and in the one that accepts them. */
  open(options: Options): Promise<Database>;
  /** Serves clients in this thread, from the open store. */
  serve(
    database: Database,
    options: Options,
    listener: ThreadListener<Notice>,
  ): ClientThread<Notice>;
}

/** A thread that serves clients. */
export interface ClientThread<Notice> {
  /** Serves a client from here on. The socket is paused, and half open when the client ends. */
  adopt(socket: Socket, peer: Peer): void;
  /** Takes note of what another thread has announced. */
  notice(notice: Notice): void;
  /** Sends what was answered, and closes all connections. The database stays open. */
  close(): Promise<void>;
}

/** What a thread tells those who started it. */
export interface ThreadListener<Notice> {
  /** A client has gone. */
  left(id: number): void;
  /** Something that all other threads should know, such as a changed setting. */
  announced(notice: Notice): void;
  /** Something that should not happen: the thread is of no use any more. */
  failed(error: unknown): void;
}
