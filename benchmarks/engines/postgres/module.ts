// The little of node-postgres (the package "pg") that is used here.
import type { Socket } from "node:net";

export interface PgModule {
  readonly Client: new (options: PgOptions) => PgClient;
}

export interface PgOptions {
  readonly host: string;
  readonly user: string;
  readonly database: string;
  /** Settings of the session: "-c name=value". */
  readonly options: string;
  /** Sends each query at once, without waiting for the answers to those before. */
  readonly pipeline: boolean;
  readonly stream?: () => Socket;
  readonly types: PgTypes;
}

export interface PgTypes {
  getTypeParser(oid: number, format?: string): (text: string) => unknown;
}

export interface PgClient {
  connect(): Promise<unknown>;
  query(sql: string): Promise<PgResult>;
  query(query: PgQuery): Promise<PgResult>;
  query(copy: Submittable): unknown;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** A statement that the server prepares when it first sees its name. */
export interface PgQuery {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (string | number | boolean)[];
}

export interface PgResult {
  readonly rows: Readonly<Record<string, unknown>>[];
  readonly rowCount: number | null;
}

/** What the package offers for requests of one's own, such as COPY. */
export interface Submittable {
  submit(connection: PgConnection): void;
  handleCopyInResponse(connection: PgConnection): void;
  handleCommandComplete(): void;
  handleReadyForQuery(): void;
  handleError(error: Error): void;
}

export interface PgConnection {
  query(sql: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}
