/**
 * The procedures of a node: found in the modules that it was started with, run in the host's thread
 * when a CALL arrives, once for each number of a client's session (cluster/outcomes.ts). A call that names
 * a row of another node is passed on to that node. So many run at once; further calls wait for their
 * turn, and one whose time is over by then is not begun. Calls that get into each other's way at one row are
 * combined (combining.ts).
 */

import { pathToFileURL } from "node:url";
import { type Called, decodeCalled, encodeReturned, type Returned } from "../cluster/call.ts";
import { decodeAsked, keyOf } from "../cluster/outcome.ts";
import { type Attempt, Outcomes } from "../cluster/outcomes.ts";
import type { NodeService } from "../cluster/service.ts";
import { Deadline, serveOpenSession, sessionOf, type TimeLeft } from "../cluster/session.ts";
import { isProcedure, type Procedure } from "../database/procedure.ts";
import { isPassing } from "../database/remote/follower.ts";
import type { RemoteDatabase } from "../database/remote/remote-database.ts";
import type { RemoteTransaction } from "../database/remote/remote-transaction.ts";
import type { Clock, Incoming } from "../fabric/fabric.ts";
import { MAX_FRAME_WORDS, tooLong, Writer } from "../fabric/wire.ts";
import { keyText } from "../protocols/execute/remote-table.ts";
import type { Origin } from "../protocols/origin.ts";
import { realClock } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_PASSED_ON_CALLS, MAX_RUNNING_CALLS, MAX_WAITING_CALLS } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import type { Table } from "../tables/table.ts";
import { type CombinedCall, Combining } from "./combining.ts";

/** For the headers of frames around what a procedure returns. */
const REPLY_SPARE_WORDS = 16;

/** What a node's procedures run on. */
export interface ProcedureHost {
  readonly db: RemoteDatabase;
  readonly service: NodeService;
}

export class Procedures {
  readonly #byName: ReadonlyMap<string, Procedure>;
  readonly #outcomes = new Outcomes<Returned>();
  readonly #opened = new Map<Procedure, Promise<void>>();
  /** By their origins, the oldest first: whoever called them asks here, should the node between leave. */
  readonly #passedOn = new Map<string, Attempt<Returned>>();
  /** The calls of the node's database; it has one. */
  #combining: Combining<RemoteTransaction> | undefined;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  readonly #clock: Clock;

  /** A simulation has procedures of its own, and its own clock. */
  constructor(byName: ReadonlyMap<string, Procedure>, clock: Clock = realClock) {
    this.#byName = byName;
    this.#clock = clock;
  }

  static async load(modules: readonly string[]): Promise<Procedures> {
    const byName = new Map<string, Procedure>();
    for (const path of modules) {
      for (const found of Object.values(await importModule(path)).filter(isProcedure)) {
        if (byName.has(found.name)) {
          throw new SituError(
            "SITU_CONFIG",
            `two procedures are called ${found.name}: see ${path}`,
          );
        }
        byName.set(found.name, found);
      }
    }
    return new Procedures(byName);
  }

  get names(): string[] {
    return [...this.#byName.keys()];
  }

  serveOpen(incoming: Incoming): void {
    serveOpenSession(this.#outcomes, incoming, this.#clock.nowMs());
  }

  serve(host: ProcedureHost, incoming: Incoming): void {
    const { numbered, called, leftMs } = decodeCalled(incoming.body);
    const session = sessionOf(incoming, numbered.session);
    const { number } = numbered;
    const waiting = this.#waiting.length + (this.#combining?.waiting ?? 0);
    const isFull = waiting >= MAX_WAITING_CALLS;
    const { attempt, isNew } = this.#outcomes.attempt(session, number, this.#clock.nowMs(), isFull);
    const ticket = incoming.defer();
    if (isNew) {
      // Only a node speaks for others.
      const origin = (incoming.from.node >= 0 && called.origin) || { session, number };
      const time = new Deadline(this.#clock, leftMs);
      if (origin.session !== session) this.#keepPassedOn(keyOf(origin), attempt);
      void this.#run(host, { ...called, origin }, time).then(({ returned, bytes }) => {
        attempt.end(returned);
        this.#outcomes.keep(attempt, bytes, goneResult(called));
      });
    }
    attempt.hear((returned) => ticket.reply((out) => encodeReturned(out, returned)));
  }

  #keepPassedOn(origin: string, attempt: Attempt<Returned>): void {
    this.#passedOn.set(origin, attempt);
    if (this.#passedOn.size <= MAX_PASSED_ON_CALLS) return;
    for (const [oldest, { outcome }] of this.#passedOn) {
      if (outcome === undefined) continue;
      this.#passedOn.delete(oldest);
      return;
    }
  }

  /** What became of a call that another node has passed on, for the one who called it. */
  serveOutcome(incoming: Incoming): void {
    const attempt = this.#passedOn.get(keyOf(decodeAsked(incoming)));
    if (attempt === undefined) {
      incoming.reply().word(0);
      return;
    }
    const { outcome } = attempt;
    if (outcome === undefined) throw new SituError("SITU_OVERLOADED", "the procedure is running");
    const out = incoming.reply();
    out.word(1);
    encodeReturned(out, outcome);
  }

  /** Never rejects: an error is an outcome, too. */
  async #run(host: ProcedureHost, called: CalledFor, time: TimeLeft): Promise<Measured> {
    let returned: Returned;
    try {
      return await this.#runHereOrThere(host, called, time);
    } catch (error) {
      returned = { isDone: false, error: toSend(called.procedure, error) };
      return { returned, bytes: returned.error.message.length };
    }
  }

  async #runHereOrThere(host: ProcedureHost, called: CalledFor, time: TimeLeft): Promise<Measured> {
    const { procedure: name, values, isPassedOn, origin } = called;
    const found = this.#byName.get(name);
    if (found === undefined) {
      const names = this.names.join(", ") || "none";
      throw new SituError(
        "SITU_UNKNOWN_PROCEDURE",
        `node ${host.service.self} has no procedure ${name}; it has ${names}`,
      );
    }
    await this.#open(host, found);
    const place = found.at?.(...values);
    // It takes no turn here: two nodes that waited for each other's would wait for ever.
    const elsewhere =
      place && !isPassedOn ? await this.#runThere(host, place, called, time) : undefined;
    if (elsewhere !== undefined) return measure(elsewhere.value);
    const call: CombinedCall<RemoteTransaction> = {
      origin,
      time,
      // In the transaction: what cannot be sent must not be committed.
      body: async (tx) => measure(await found.body(tx, ...values)),
      notBegun: () => notBegun(name),
    };
    if (place !== undefined) {
      return (await this.#combined(host).run(rowOf(host.db, place), call)) as Measured;
    }
    return (await this.#inTurn(async () => {
      const leftMs = Math.ceil(time.leftMs());
      if (leftMs <= 0) throw notBegun(name);
      return await host.db.transactFor(origin, leftMs, async (tx) => call.body(tx));
    })) as Measured;
  }

  /** A transaction of several calls takes one turn. */
  #combined({ db }: ProcedureHost): Combining<RemoteTransaction> {
    this.#combining ??= new Combining(
      (origin, leftMs, callback) => {
        const time = new Deadline(this.#clock, leftMs);
        return this.#inTurn(async () => {
          const nowLeftMs = Math.ceil(time.leftMs());
          if (nowLeftMs <= 0) throw notBegun();
          return db.transactFor(origin, nowLeftMs, callback) as Promise<never>;
        });
      },
      () => this.#clock.nowMs(),
    );
    return this.#combining;
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < MAX_RUNNING_CALLS) this.#running++;
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  /** Its tables, at all nodes that can be reached; once. */
  #open(host: ProcedureHost, found: Procedure): Promise<void> {
    let opened = this.#opened.get(found);
    if (opened === undefined) {
      opened = host.db.openTables(found.tables);
      this.#opened.set(found, opened);
      // Another call may find the other nodes up by then.
      opened.catch(() => this.#opened.delete(found));
    }
    return opened;
  }

  /** Passes a call on to the primary of a row; undefined if that is here. */
  async #runThere(
    { db, service }: ProcedureHost,
    [table, key]: readonly [Table, unknown],
    called: CalledFor,
    time: TimeLeft,
  ): Promise<{ readonly value: unknown } | undefined> {
    const remote = db.tableOf(table);
    const partition = remote.partitionOf(key);
    for (;;) {
      const { configurationId } = db.view;
      const node = remote.primaryOf(partition);
      if (node === service.self) return undefined;
      const returned = await db.callAt(node, { ...called, isPassedOn: true }, time);
      if (returned?.isDone) return returned;
      // Nothing was done, and another node may have the row by now.
      const mayRetry = returned === undefined || isPassing(returned.error);
      if (!mayRetry || time.leftMs() <= 0) throw returned?.error ?? notBegun(called.procedure);
      await db.pause(configurationId, time.leftMs());
    }
  }
}

/** A call, and for whom it is. */
type CalledFor = Called & { readonly origin: Origin };

/** Tells rows apart. */
function rowOf(db: RemoteDatabase, [table, key]: readonly [Table, unknown]): string {
  const remote = db.tableOf(table);
  // Checks the key's type.
  remote.partitionOf(key);
  return `${remote.id} ${keyText(remote.keptKey(key))}`;
}

function notBegun(name?: string): SituError {
  const what = name === undefined ? "the call" : `procedure ${name}`;
  return new SituError(
    "SITU_OVERLOADED",
    `${what} was not begun: its time was over before its turn came`,
  );
}

/** In place of a result that was kept for long enough. */
function goneResult({ procedure }: Called): Returned {
  const why = `procedure ${procedure} has ended, and its result is not kept any more`;
  return { isDone: false, error: new SituError("SITU_UNKNOWN_OUTCOME", why) };
}

/** One for the thread: a new one for each call would cost more than to encode what most return. */
const measured = new Writer();
measured.limit = MAX_FRAME_WORDS - REPLY_SPARE_WORDS;

/** What a procedure has returned, and what it takes. */
interface Measured {
  readonly returned: Returned;
  readonly bytes: number;
}

/** Fails for what cannot be sent. */
function measure(value: unknown): Measured {
  const returned: Returned = { isDone: true, value };
  measured.clear();
  encodeReturned(measured, returned);
  if (measured.at > measured.limit) throw tooLong();
  return { returned, bytes: measured.at * 4 };
}

export async function importModule(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (cause) {
    const why = (cause as Error).message;
    throw new SituError("SITU_CONFIG", `the procedures of ${path} cannot be loaded: ${why}`, {
      cause,
    });
  }
}

/** What a body throws goes to the caller as a text; what Situ throws keeps its code. */
function toSend(name: string, error: unknown): SituError {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (error instanceof SituError) return error;
  if (typeof code === "string" && code.startsWith("SITU_")) {
    return new SituError(code as SituError["code"], String(message));
  }
  const text = error instanceof Error ? `${error.name}: ${error.message}` : show(error);
  return new SituError("SITU_PROCEDURE", `procedure ${name} failed: ${text}`);
}
