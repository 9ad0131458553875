/**
 * The procedures of a node: found in the modules that it was started with, run in the host's thread
 * when a CALL arrives, once for each number of a client (cluster/outcomes.ts). A call that names a row
 * of another node is passed on to that node.
 */

import { pathToFileURL } from "node:url";
import { Call, type Called, decodeCalled, encodeReturned, type Returned } from "../cluster/call.ts";
import { Outcomes } from "../cluster/outcomes.ts";
import type { NodeService } from "../cluster/service.ts";
import { isProcedure, type Procedure } from "../database/procedure.ts";
import type { RemoteDatabase } from "../database/remote/remote-database.ts";
import type { Incoming, NodeId } from "../fabric/fabric.ts";
import { MAX_FRAME_WORDS, tooLong, Writer } from "../fabric/wire.ts";
import { once } from "../protocols/message.ts";
import { nowMs } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { show } from "../runtime/show.ts";

/** For the headers of frames around what a procedure returns. */
const REPLY_SPARE_WORDS = 16;

/** What a node's procedures run on. */
export interface ProcedureHost {
  readonly db: RemoteDatabase;
  readonly service: NodeService;
  /** Waits until all nodes are there. */
  meet(): Promise<void>;
  /** Which life of another node this one has met. */
  instanceOf(node: NodeId): string;
  /** Asks a node for it again. */
  meetAgain(node: NodeId): Promise<void>;
}

export class Procedures {
  readonly #byName: ReadonlyMap<string, Procedure>;
  readonly #outcomes = new Outcomes<Returned>();
  readonly #opened = new Map<Procedure, Promise<void>>();
  #passedOn = 0;
  readonly #passing = new Set<number>();

  private constructor(byName: ReadonlyMap<string, Procedure>) {
    this.#byName = byName;
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

  serve(host: ProcedureHost, incoming: Incoming): void {
    const called = decodeCalled(incoming.body);
    const { numbered } = called;
    host.service.checkInstance(numbered);
    const { client, number, low } = numbered;
    const { attempt, isNew } = this.#outcomes.attempt(
      `${incoming.from.node} ${client}`,
      number,
      low,
      nowMs(),
    );
    const ticket = incoming.defer();
    if (isNew) void this.#run(host, called).then((returned) => attempt.end(returned));
    attempt.hear((returned) => ticket.reply((out) => encodeReturned(out, returned)));
  }

  /** Never rejects: an error is an outcome, too. */
  async #run(host: ProcedureHost, called: Called): Promise<Returned> {
    try {
      const returned = { isDone: true, value: await this.#runHereOrThere(host, called) } as const;
      checkSendable(returned);
      return returned;
    } catch (error) {
      return { isDone: false, error: toSend(called.procedure, error) };
    }
  }

  async #runHereOrThere(host: ProcedureHost, called: Called): Promise<unknown> {
    const { procedure: name, values, timeoutMs, isPassedOn } = called;
    const found = this.#byName.get(name);
    if (found === undefined) {
      const names = this.names.join(", ") || "none";
      throw new SituError(
        "SITU_UNKNOWN_PROCEDURE",
        `node ${host.service.self} has no procedure ${name}; it has ${names}`,
      );
    }
    await this.#open(host, found);
    const place = isPassedOn ? undefined : found.at?.(...values);
    if (place !== undefined) {
      const table = host.db.tableOf(place[0]);
      const node = table.primaryOf(table.partitionOf(place[1]));
      if (node !== host.service.self) return this.#passOn(host, node, called);
    }
    const result = await host.db.transact(async (tx) => await found.body(tx, ...values), {
      timeoutMs,
    });
    return result;
  }

  /** Its tables, at all nodes; once. */
  #open(host: ProcedureHost, found: Procedure): Promise<void> {
    let opened = this.#opened.get(found);
    if (opened === undefined) {
      opened = host.meet().then(() => host.db.openTables(found.tables));
      this.#opened.set(found, opened);
      // Another call may find the other nodes up by then.
      opened.catch(() => this.#opened.delete(found));
    }
    return opened;
  }

  async #passOn(host: ProcedureHost, node: NodeId, called: Called): Promise<unknown> {
    const { service } = host;
    const number = this.#passedOn++;
    this.#passing.add(number);
    try {
      const [low] = this.#passing;
      const client = `calls of node ${service.self} ${host.instanceOf(service.self)}`;
      const numbered = { instance: host.instanceOf(node), client, number, low };
      const message = new Call(node, { ...called, numbered, isPassedOn: true });
      await service.driver.start(once(message), called.timeoutMs);
      const { returned, error } = message;
      if (returned?.isDone) return returned.value;
      // It was started anew: whether it had run there nobody knows, but the next one can be sent.
      if (error?.code === "SITU_UNKNOWN_OUTCOME") await host.meetAgain(node);
      throw returned?.error ?? error;
    } finally {
      this.#passing.delete(number);
    }
  }
}

/** What cannot be sent must fail now: later, with the outcome known, there is nobody to tell. */
function checkSendable(returned: Returned): void {
  const out = new Writer();
  out.limit = MAX_FRAME_WORDS - REPLY_SPARE_WORDS;
  encodeReturned(out, returned);
  if (out.at > out.limit) throw tooLong();
}

async function importModule(path: string): Promise<Record<string, unknown>> {
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
