// One connection to Redis, over its unix socket: Redis works off all that arrives together, and
// answers together, so more connections from one process gain nothing. What a turn of the event loop
// asks for leaves in one write; ioredis's own `enableAutoPipelining` does the same, at more cost.
import { createHash } from "node:crypto";
import { type Corkable, OneWrite } from "../../harness/one-write.ts";

/** The little of ioredis that the stores use. */
export interface RedisClient {
  readonly stream: Corkable;
  get(key: string): Promise<string | null>;
  mget(...keys: string[]): Promise<(string | null)[]>;
  incrby(key: string, by: number): Promise<number>;
  hvals(key: string): Promise<string[]>;
  hkeys(key: string): Promise<string[]>;
  hset(key: string, ...fieldsAndValues: string[]): Promise<number>;
  zcard(key: string): Promise<number>;
  del(key: string): Promise<number>;
  flushall(): Promise<unknown>;
  evalsha(sha: string, keys: number, ...keysAndArguments: (string | number)[]): Promise<unknown>;
  script(command: "LOAD", lua: string): Promise<unknown>;
  object(command: "ENCODING", key: string): Promise<string | null>;
  scan(cursor: string, ...match: ["MATCH", string, "COUNT", number]): Promise<[string, string[]]>;
  pipeline(): RedisPipeline;
  connect(): Promise<void>;
  quit(): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** Answers come as pairs of error and value. */
export interface RedisPipeline {
  get(key: string): unknown;
  hvals(key: string): unknown;
  hgetall(key: string): unknown;
  zrange(key: string, from: number, to: number, scores: "WITHSCORES"): unknown;
  exec(): Promise<[Error | null, unknown][] | null>;
}

export interface IoredisModule {
  readonly Redis: new (options: {
    readonly path: string;
    readonly lazyConnect: boolean;
    readonly retryStrategy: () => null;
  }) => RedisClient;
}

/** A transaction in Lua: loaded once, then called by its hash. */
export interface Script {
  readonly lua: string;
  readonly sha: string;
}

export function script(lua: string): Script {
  return { lua, sha: createHash("sha1").update(lua).digest("hex") };
}

export class RedisConnection {
  /** For whatever is not measured. */
  readonly client: RedisClient;
  /** One after the other needs no gathering. */
  readonly #oneWrite: OneWrite | undefined;

  private constructor(client: RedisClient, inFlight: number) {
    this.client = client;
    this.#oneWrite = inFlight > 1 ? new OneWrite(client.stream) : undefined;
  }

  static async open(
    { Redis }: IoredisModule,
    socketFile: string,
    inFlight: number,
    scripts: readonly Script[],
  ): Promise<RedisConnection> {
    // No reconnecting: a server that is gone should fail the run, not slow it down.
    const client = new Redis({ path: socketFile, lazyConnect: true, retryStrategy: () => null });
    // The pending request rejects as well; without a listener ioredis prints the error.
    client.on("error", () => {});
    await client.connect();
    for (const { lua } of scripts) await client.script("LOAD", lua);
    return new RedisConnection(client, inFlight);
  }

  /** The client for a request that leaves with the others of this turn. */
  get gathered(): RedisClient {
    this.#oneWrite?.gather();
    return this.client;
  }

  async close(): Promise<void> {
    await this.client.quit();
  }
}

/** A pipeline whose answers must all be good. */
export async function answers(pipeline: RedisPipeline): Promise<unknown[]> {
  const replies = (await pipeline.exec()) ?? [];
  return replies.map(([error, value]) => {
    if (error !== null) throw error;
    return value;
  });
}
