/**
 * What clients ask of NICs, with replies; the hosts of nodes are clients of their own NICs.
 *
 *   OPEN TABLE  JSON: a schema, how much room, and a number unless the first node is to give one; so the reply
 *   READ        rows; the reply has them with versions and values, or says that one is locked
 *   SUBMIT      a transaction that was executed: rows with what was read and what is written; the reply is its outcome
 *   CALL        a procedure, how much time it has, whether another node has passed it on, and its arguments; so the reply
 */

import type { NodeId, Request } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { SituError, type SituErrorCode } from "../../runtime/errors.ts";
import { XENIC_MAX_ITEMS } from "../../runtime/limits.ts";
import { XENIC_CALL, XENIC_OPEN_TABLE, XENIC_READ, XENIC_SUBMIT } from "../kinds.ts";
import type { XenicOutcome } from "./coordinator.ts";
import type { HostTableShape } from "./host-table.ts";
import { decodeItem, encodeItem, type Item } from "./message.ts";

/** A table as all nodes know it. */
export interface OpenedTable {
  readonly number: number;
  readonly name: string;
  /** JSON (tables/schema.ts). */
  readonly schema: string;
  readonly shape: HostTableShape;
}

/** Without a number: the first node gives it one. */
export interface WantedTable extends Omit<OpenedTable, "number"> {
  readonly number?: number;
  /** It is not made if it is not open yet: another node does not answer. */
  readonly isOpenOnly?: boolean;
}

/** How a request is sent: by any fabric. */
export interface Sender {
  send(to: NodeId, request: Request): void;
}

function ask<T>(
  fabric: Sender,
  to: NodeId,
  kind: number,
  encode: (out: Writer) => void,
  decode: (reply: Reader) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    fabric.send(to, {
      kind,
      encode,
      replied: (reply) => {
        try {
          resolve(decode(reply));
        } catch (error) {
          reject(error);
        }
      },
      failed: reject,
    });
  });
}

export function askOpenTable(fabric: Sender, to: NodeId, table: WantedTable): Promise<OpenedTable> {
  return ask(
    fabric,
    to,
    XENIC_OPEN_TABLE,
    (out) => out.text(JSON.stringify(table)),
    (reply) => JSON.parse(reply.text()) as OpenedTable,
  );
}

/** Undefined if a transaction has locked one of them. */
export function askRead(
  fabric: Sender,
  to: NodeId,
  items: readonly Item[],
): Promise<Item[] | undefined> {
  return ask(
    fabric,
    to,
    XENIC_READ,
    (out) => encodeItems(out, items),
    (reply) => (reply.word() === 1 ? decodeItems(reply) : undefined),
  );
}

const REASONS = ["conflict", "busy", "refused", "too large"] as const;
const COMMITTED = REASONS.length;

export function askSubmit(
  fabric: Sender,
  to: NodeId,
  items: readonly Item[],
): Promise<XenicOutcome> {
  return ask(fabric, to, XENIC_SUBMIT, (out) => encodeItems(out, items), decodeOutcome);
}

export function encodeOutcome(out: Writer, outcome: XenicOutcome): void {
  if (outcome.kind === "aborted") out.word(REASONS.indexOf(outcome.reason));
  else out.word(COMMITTED);
}

function decodeOutcome(reply: Reader): XenicOutcome {
  const word = reply.count(COMMITTED);
  if (word === COMMITTED) return { kind: "committed", result: new Int32Array(0) };
  return { kind: "aborted", reason: REASONS[word] };
}

export interface CalledProcedure {
  readonly name: string;
  readonly leftMs: number;
  readonly isPassedOn: boolean;
  readonly values: readonly unknown[];
}

/** What it returned; throws what it threw. */
export function askCall(fabric: Sender, to: NodeId, called: CalledProcedure): Promise<unknown> {
  return ask(
    fabric,
    to,
    XENIC_CALL,
    (out) => {
      out.text(called.name);
      out.wide(Math.max(0, Math.ceil(called.leftMs)));
      out.word(called.isPassedOn ? 1 : 0);
      out.value(called.values);
    },
    decodeEnded,
  );
}

export function decodeCall(body: Reader): CalledProcedure {
  const name = body.text();
  const leftMs = body.wide();
  const isPassedOn = body.word() === 1;
  const values = body.value();
  if (!Array.isArray(values) || !Number.isSafeInteger(leftMs)) {
    throw new SituError("SITU_PROTOCOL", "a call makes no sense");
  }
  return { name, leftMs, isPassedOn, values };
}

/** How a procedure has ended. */
export type Ended =
  | { readonly isDone: true; readonly value: unknown }
  | { readonly isDone: false; readonly code: string; readonly message: string };

export function encodeEnded(out: Writer, ended: Ended): void {
  out.word(ended.isDone ? 1 : 0);
  if (ended.isDone) out.value(ended.value);
  else {
    out.text(ended.code);
    out.text(ended.message);
  }
}

export function decodeEnded(reply: Reader): unknown {
  if (reply.word() === 1) return reply.value();
  const code = reply.text() as SituErrorCode;
  throw new SituError(code, reply.text());
}

export function encodeItems(out: Writer, items: readonly Item[]): void {
  out.word(items.length);
  for (const item of items) encodeItem(out, item);
}

export function decodeItems(body: Reader): Item[] {
  const items: Item[] = [];
  for (let left = body.count(XENIC_MAX_ITEMS); left > 0; left--) items.push(decodeItem(body));
  return items;
}
