/**
 * A graph as JSON lines: one object or one edge on each.
 *
 *   {"id":7,"kind":"user","data":{"name":"ada"}}
 *   {"id":8,"kind":"user","deleted":true}                          it is gone, and its edges were kept
 *   {"from":7,"type":"follows","to":9,"time":1700000000000,"data":{"n":1}}
 *
 * Where there are no fields, there is no data. Of an edge and its inverse, one is written: the other comes with it.
 */

import { SituError } from "../runtime/errors.ts";
import { show } from "../runtime/show.ts";
import type { AssociationType, GraphDefinition, Kind } from "../tables/graph/definition.ts";
import type { Fields, Table } from "../tables/table.ts";
import type { RowReader } from "./format.ts";
import { JSON_LINES } from "./json-lines.ts";
import { type FieldText, fieldTexts } from "./value-text.ts";

/** An edge, as `assocRange` returns it. */
export interface EdgeOfList {
  readonly id2: number;
  readonly time: number;
  readonly data: unknown;
}

/** A line that was read. */
export interface GraphLine {
  readonly id?: unknown;
  readonly kind?: unknown;
  readonly deleted?: unknown;
  readonly from?: unknown;
  readonly type?: unknown;
  readonly to?: unknown;
  readonly time?: unknown;
  readonly data?: unknown;
}

const OBJECT_MEMBERS = ["id", "kind", "data", "deleted"];
const EDGE_MEMBERS = ["from", "type", "to", "time", "data"];

export class GraphLinesWriter {
  readonly #data = new Map<Fields, ((data: object) => string) | undefined>();

  object({ name, fields }: Kind, id: number, data: unknown): string {
    const start = `{"id":${id},"kind":${JSON.stringify(name)}`;
    return `${start}${this.#dataOf(fields, data)}}\n`;
  }

  /** An object that was deleted, and whose edges were kept. */
  shell({ name }: Kind, id: number): string {
    return `{"id":${id},"kind":${JSON.stringify(name)},"deleted":true}\n`;
  }

  edge({ name, fields }: AssociationType, from: number, { id2, time, data }: EdgeOfList): string {
    const start = `{"from":${from},"type":${JSON.stringify(name)},"to":${id2},"time":${time}`;
    return `${start}${this.#dataOf(fields, data)}}\n`;
  }

  #dataOf(fields: Fields, data: unknown): string {
    if (!this.#data.has(fields)) this.#data.set(fields, dataWriter(fields));
    const write = this.#data.get(fields);
    return write === undefined ? "" : `,"data":${write(data as object)}`;
  }
}

export class GraphLinesReader implements RowReader {
  readonly #definition: GraphDefinition;
  readonly #lines = JSON_LINES.reader([]);
  /** The fields whose values JSON has no type for, by kind or type. */
  readonly #texts = new Map<Fields, readonly FieldText[]>();

  constructor(definition: GraphDefinition) {
    this.#definition = definition;
  }

  readHead(text: string, isLast: boolean): number {
    return this.#lines.readHead(text, isLast);
  }

  next(text: string, from: number, isLast: boolean): number {
    return this.#lines.next(text, from, isLast);
  }

  row(text: string, from: number, end: number): object | undefined {
    const line = this.#lines.row(text, from, end) as GraphLine | undefined;
    if (line === undefined) return undefined;
    const isEdge = Object.hasOwn(line, "type");
    const known = isEdge ? EDGE_MEMBERS : OBJECT_MEMBERS;
    const unknown = Object.keys(line).find((each) => !known.includes(each));
    if (unknown !== undefined) {
      throw new SituError(
        "SITU_TYPE",
        `${isEdge ? "an edge" : "an object"} of a graph has ${known.join(", ")}, and no ${show(unknown)}`,
      );
    }
    const { kindsByName, typesByName } = this.#definition;
    const of = isEdge ? typesByName.get(line.type as string) : kindsByName.get(line.kind as string);
    // What was not declared, and what is no data, the graph refuses with a reason.
    if (of !== undefined && typeof line.data === "object" && line.data !== null) {
      const data = line.data as Record<string, unknown>;
      for (const { name, fromJson } of this.#textsOf(of.fields)) {
        if (Object.hasOwn(data, name)) data[name] = fromJson(data[name]);
      }
    }
    return line;
  }

  #textsOf(fields: Fields): readonly FieldText[] {
    let texts = this.#texts.get(fields);
    if (texts === undefined) {
      texts = textsOf(fields);
      this.#texts.set(fields, texts);
    }
    return texts;
  }
}

function dataWriter(fields: Fields): ((data: object) => string) | undefined {
  const texts = textsOf(fields);
  if (texts.length === 0) return undefined;
  const writer = JSON_LINES.writer(texts);
  return (data) => writer.line(data).trimEnd();
}

function textsOf(fields: Fields): FieldText[] {
  return fieldTexts({ name: "of a graph", key: [], fields } as unknown as Table);
}
