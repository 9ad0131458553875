/** What is known about a client: CLIENT LIST shows it, connection commands change it. */

export interface SessionState {
  /** Unique in this gateway. */
  readonly id: number;
  readonly address: string;
  readonly localAddress: string;
  readonly connectedMs: number;
  name: string;
  libraryName: string;
  libraryVersion: string;
  protocol: 2 | 3;
  isAuthenticated: boolean;
  /** The command that ran last, as CLIENT LIST names it: "client|list". */
  lastCommand: string;
  lastMs: number;
  /** Commands queued since MULTI, or -1. */
  readonly queued: number;
  readonly watched: number;
  /** Bytes that came and wait for the rest of their request; bytes of replies not sent yet. */
  readonly inputBytes: number;
  readonly outputBytes: number;
  /** Closes the connection when all replies have been sent. */
  closeAfterReply(): void;
  /** MULTI, WATCH, name and protocol as in the beginning, for RESET. */
  reset(): void;
}
