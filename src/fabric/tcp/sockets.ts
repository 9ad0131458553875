/** Sockets with and without TLS: above this file nobody knows which. */

import { connect, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import * as tls from "node:tls";
import { SituError } from "../../runtime/errors.ts";
import type { NodeAddress, TlsOptions } from "./tcp-options.ts";

/** One who has vanished without a word is found by the operating system, in time. */
const keepAliveInitialDelay = 30_000;

export function connectTo({ host, port }: NodeAddress, secure: TlsOptions | undefined): Socket {
  if (secure === undefined) {
    return connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay });
  }
  const socket = tls.connect({ ...secure, host, port });
  socket.setNoDelay(true);
  socket.setKeepAlive(true, keepAliveInitialDelay);
  return socket;
}

/** An error of a socket as ours: one that comes again with each attempt is not SITU_LOST. */
export function errorOf(socket: Duplex, error: NodeJS.ErrnoException): SituError {
  const code = error.code ?? "";
  if (socket instanceof tls.TLSSocket && socket.authorizationError) return untrusted(socket);
  if (code === "EPROTO" || code.startsWith("ERR_SSL_")) {
    return new SituError("SITU_PROTOCOL", `the other end does not speak TLS: ${error.message}`);
  }
  return new SituError("SITU_LOST", "the connection broke", { cause: error });
}

const BINDING_BYTES = 32;

/** What only the two ends of this TLS session know, after its handshake; nothing without TLS. */
export function bindingOf(socket: Duplex): Uint8Array {
  if (!(socket instanceof tls.TLSSocket)) return new Uint8Array(0);
  return socket.exportKeyingMaterial(BINDING_BYTES, "EXPORTER-situ", Buffer.alloc(0));
}

function untrusted({ authorizationError: why }: tls.TLSSocket): SituError {
  return new SituError("SITU_SECRET", `the certificate is not trusted: ${why}`);
}

export interface Listening {
  readonly secure: TlsOptions | undefined;
  readonly handshakeTimeoutMs: number;
  /** Connections that the operating system accepts; those above are dropped without a word. */
  readonly maxSockets: number;
  accepted(socket: Socket): void;
  /** One whose certificate is not trusted, or who has none and should. */
  untrusted(socket: Socket, why: SituError): void;
  /** Connections that never came to be: dropped, or without a TLS handshake. */
  dropped(): void;
  garbled(): void;
  /** To accept a connection has failed, for want of file descriptors, say. */
  failed(error: NodeJS.ErrnoException): void;
}

/** A server, and all sockets that it has accepted, in the middle of a TLS handshake too. */
export interface Accepting {
  readonly server: Server;
  readonly sockets: ReadonlySet<Socket>;
}

/** Resolves when it listens. An error then rejects; a later one is told. */
export function listenAt({ host, port }: NodeAddress, listening: Listening): Promise<Accepting> {
  const server = serverOf(listening);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.maxConnections = listening.maxSockets;
  server.on("drop", () => listening.dropped());
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      server.on("error", (error) => listening.failed(error));
      resolve({ server, sockets });
    });
  });
}

function serverOf(listening: Listening): Server {
  const { secure, handshakeTimeoutMs: handshakeTimeout } = listening;
  if (secure === undefined) {
    const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay };
    return createServer(options, (socket) => listening.accepted(socket));
  }
  // The certificate is judged here and not by node:tls, which would hang up without a word.
  const options = { ...secure, handshakeTimeout, noDelay: true, rejectUnauthorized: false };
  const server = tls.createServer(options, (socket) => {
    if (secure.requestCert === true && !socket.authorized) {
      listening.untrusted(socket, untrusted(socket));
    } else listening.accepted(socket);
  });
  server.on("tlsClientError", (_error, socket) => {
    listening.garbled();
    socket.destroy();
  });
  return server;
}
