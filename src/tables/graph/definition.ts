/**
 * The kinds of objects and types of associations of a graph, as its users declare them and as a store keeps them. The
 * store has a number for each name, in the order in which they were first declared: numbers are what objects and
 * lists hold, so they never change, and programs that declare more than others add to the end.
 */

import type { Views } from "../../memory/views.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  MAX_ASSOCIATION_TYPES,
  MAX_FIELDS,
  MAX_NAME_BYTES,
  MAX_OBJECT_KINDS,
} from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import type { RowCodec } from "../../stores/store.ts";
import { codecOf } from "../codec/codec.ts";
import { fieldFromText, fieldText } from "../field-text.ts";
import { hashText } from "../partitions.ts";
import type { Fields, Table } from "../table.ts";

/** An association as it is declared. */
export interface AssociationOptions<Kinds extends string = string> {
  /** The kinds of objects that have such edges. Default: all. */
  readonly from?: Kinds | readonly Kinds[];
  /**
   * The kinds of objects that such edges lead to. If it is left out, targets are plain numbers, and nobody looks
   * whether there is an object.
   */
  readonly to?: Kinds | readonly Kinds[];
  /** The fields of an edge, besides its target and its time. */
  readonly data?: Fields;
  /**
   * The name of the same association seen from the other end. It is kept in the same transactions, with the same
   * times and data; its own name makes it symmetric.
   */
  readonly inverse?: string;
}

/** The kinds of objects of a graph, with their fields. */
export type ObjectKinds = Readonly<Record<string, Fields>>;
/** The types of associations of a graph. */
export type AssociationTypes = Readonly<Record<string, AssociationOptions>>;

/** Turns data of an object or of an edge into words and back. */
export type DataCodec = RowCodec<unknown, never>;

export interface Kind {
  readonly name: string;
  readonly number: number;
  readonly fields: Fields;
  readonly codec: DataCodec;
}

export interface AssociationType {
  readonly name: string;
  readonly number: number;
  readonly fields: Fields;
  readonly codec: DataCodec;
  /** The number of the inverse, or -1. */
  readonly inverse: number;
  /** The numbers of kinds that may be at its ends; undefined if it does not matter. */
  readonly from: ReadonlySet<number> | undefined;
  readonly to: ReadonlySet<number> | undefined;
}

/** A graph as the store has it. */
export interface StoredGraph {
  readonly kinds: readonly (readonly [name: string, fields: Record<string, string>])[];
  readonly types: readonly (readonly [
    name: string,
    fields: Record<string, string>,
    inverse: string | null,
  ])[];
}

/** What the objects of a graph say about whose they are; it is never 0. */
export function graphTag(name: string): number {
  return hashText(name) || 1;
}

export const NO_GRAPH: StoredGraph = { kinds: [], types: [] };

/** What a program has declared, with the numbers of the store. */
export interface GraphDefinition {
  /** By number; those that this program has not declared are made of what the store says. */
  readonly kinds: readonly Kind[];
  readonly types: readonly AssociationType[];
  readonly kindsByName: ReadonlyMap<string, Kind>;
  readonly typesByName: ReadonlyMap<string, AssociationType>;
}

interface DeclaredType {
  readonly name: string;
  readonly fields: Fields;
  readonly inverse: string | undefined;
  readonly from: readonly string[] | undefined;
  readonly to: readonly string[] | undefined;
}

/** A declaration that was looked through. */
export interface DeclaredGraph {
  readonly kinds: ReadonlyMap<string, Fields>;
  readonly types: ReadonlyMap<string, DeclaredType>;
}

const KNOWN = ["from", "to", "data", "inverse"];

/** Looks through a declaration: SITU_SCHEMA says what is wrong with it. */
export function declaredGraph(
  name: string,
  objects: ObjectKinds,
  associations: AssociationTypes,
): DeclaredGraph {
  const refuse = (why: string): never => {
    throw new SituError("SITU_SCHEMA", `graph ${show(name)}: ${why}`);
  };
  if (!isName(name)) refuse(`the name must be a string of 1 to ${MAX_NAME_BYTES / 2} bytes`);
  if (!isRecord(objects)) refuse("objects must name kinds of objects, with their fields");
  if (!isRecord(associations)) refuse("associations must name types of associations");
  const kinds = new Map<string, Fields>();
  for (const [kind, fields] of Object.entries(objects)) {
    if (!isName(kind)) refuse(`${show(kind)} is no name of a kind`);
    kinds.set(kind, checkedFields(fields, `kind ${kind}`, refuse));
  }
  if (kinds.size > MAX_OBJECT_KINDS) refuse(`at most ${MAX_OBJECT_KINDS} kinds`);
  const types = new Map<string, DeclaredType>();
  const add = (type: DeclaredType): void => {
    if (!isName(type.name)) refuse(`${show(type.name)} is no name of an association`);
    if (types.has(type.name)) refuse(`association ${type.name} is declared twice`);
    types.set(type.name, type);
  };
  for (const [type, given] of Object.entries(associations)) {
    const options: AssociationOptions = given;
    const refuseType = (why: string): never => refuse(`association ${type}: ${why}`);
    if (!isRecord(options)) refuseType("its options are an object, as in { to: … }");
    for (const each of Object.keys(options)) {
      if (!KNOWN.includes(each)) {
        refuseType(`unknown option ${each}; the options are ${KNOWN.join(", ")}`);
      }
    }
    const { inverse, data = {} } = options;
    const from = kindsIn(options.from, kinds, refuseType);
    const to = kindsIn(options.to, kinds, refuseType);
    const fields = checkedFields(data, "data", refuseType);
    add({ name: type, fields, inverse, from, to });
    if (inverse === undefined) continue;
    if (typeof inverse !== "string") refuseType(`inverse is a name, not ${show(inverse)}`);
    if (to === undefined) {
      refuseType("say which kinds of objects it leads to: the inverse is kept with them");
    }
    if (inverse !== type) add({ name: inverse, fields, inverse: type, from: to, to: from ?? [] });
    else if (String(from ?? [...kinds.keys()]) !== String(to)) {
      refuseType("one that is its own inverse has the same kinds at both ends");
    }
  }
  if (types.size > MAX_ASSOCIATION_TYPES) refuse(`at most ${MAX_ASSOCIATION_TYPES} associations`);
  return { kinds, types };
}

/** The stored graph with what a program declares added; the same object if there is nothing to add. */
export function mergedGraph(
  name: string,
  stored: StoredGraph,
  declared: DeclaredGraph,
): StoredGraph {
  const refuse = (why: string): never => {
    throw new SituError(
      "SITU_SCHEMA",
      `graph ${show(name)} is stored with other definitions: ${why}`,
    );
  };
  const kinds = [...stored.kinds];
  const types = [...stored.types];
  for (const [kind, fields] of declared.kinds) {
    const own = textsOf(fields);
    const found = kinds.find(([each]) => each === kind);
    if (found === undefined) kinds.push([kind, own]);
    else if (!isSame(found[1], own)) refuse(difference(`kind ${kind}`, found[1], own));
  }
  for (const [type, { fields, inverse = null }] of declared.types) {
    const own = textsOf(fields);
    const found = types.find(([each]) => each === type);
    if (found === undefined) types.push([type, own, inverse]);
    else if (!isSame(found[1], own)) refuse(difference(`association ${type}`, found[1], own));
    else if (found[2] !== inverse) {
      refuse(
        `association ${type} has the inverse ${show(found[2])} there, and ${show(inverse)} here`,
      );
    }
  }
  if (kinds.length > MAX_OBJECT_KINDS) refuse(`it would have ${kinds.length} kinds`);
  if (types.length > MAX_ASSOCIATION_TYPES) refuse(`it would have ${types.length} associations`);
  if (kinds.length === stored.kinds.length && types.length === stored.types.length) return stored;
  return { kinds, types };
}

/** The definition that a program works with. */
export function definitionOf(
  name: string,
  stored: StoredGraph,
  declared: DeclaredGraph,
): GraphDefinition {
  const refuse = (why: string): never => {
    throw new SituError(
      "SITU_CORRUPT",
      `the definition of graph ${show(name)} makes no sense: ${why}`,
    );
  };
  const fieldsOf = (texts: Record<string, string>): Fields =>
    Object.fromEntries(
      Object.entries(texts).map(([each, text]) => [each, fieldFromText(text, refuse)]),
    );
  const kindNumbers = new Map(stored.kinds.map(([kind], number) => [kind, number]));
  const typeNumbers = new Map(stored.types.map(([type], number) => [type, number]));
  const numbersOf = (names: readonly string[] | undefined): ReadonlySet<number> | undefined =>
    names === undefined || names.length === 0
      ? undefined
      : new Set(names.map((each) => kindNumbers.get(each)!));
  const kinds = stored.kinds.map(([kind, texts], number): Kind => {
    const fields = declared.kinds.get(kind) ?? fieldsOf(texts);
    return { name: kind, number, fields, codec: dataCodec(`kind ${kind}`, fields) };
  });
  const types = stored.types.map(([type, texts, inverse], number): AssociationType => {
    const own = declared.types.get(type);
    const fields = own?.fields ?? fieldsOf(texts);
    return {
      name: type,
      number,
      fields,
      codec: dataCodec(`association ${type}`, fields),
      inverse: inverse === null ? -1 : (typeNumbers.get(inverse) ?? -1),
      from: numbersOf(own?.from),
      to: numbersOf(own?.to),
    };
  });
  return {
    kinds,
    types,
    kindsByName: new Map(
      kinds.filter((each) => declared.kinds.has(each.name)).map((each) => [each.name, each]),
    ),
    typesByName: new Map(
      types.filter((each) => declared.types.has(each.name)).map((each) => [each.name, each]),
    ),
  };
}

/** A table without a key: all that its codec is used for is the fields. */
function dataCodec(name: string, fields: Fields): DataCodec {
  if (Object.keys(fields).length === 0) return NO_DATA;
  const shape = { name, fields, key: [], singleKey: false, ordered: false, indexes: [] };
  return codecOf(shape as unknown as Table<unknown, never>) as DataCodec;
}

const EMPTY = Object.freeze({});

/** Of edges and objects that have no fields. */
const NO_DATA = {
  scratch: { i32: new Int32Array(0) } as unknown as Views,
  encode(row: unknown): number {
    if (row === undefined) return 0;
    if (typeof row !== "object" || row === null || Object.keys(row).length > 0) {
      throw new SituError("SITU_TYPE", `it has no fields: ${show(row)} cannot be its data`);
    }
    return 0;
  },
  decode: () => EMPTY,
  decodeToMerge: () => EMPTY,
  takeChanges(changes: unknown): object {
    NO_DATA.encode(changes);
    return EMPTY;
  },
  merge: () => EMPTY,
} as unknown as DataCodec;

function checkedFields(fields: unknown, what: string, refuse: (why: string) => never): Fields {
  if (!isRecord(fields)) refuse(`${what}: fields are an object, as in { name: str(40) }`);
  const names = Object.keys(fields as Fields);
  if (names.length > MAX_FIELDS) refuse(`${what}: at most ${MAX_FIELDS} fields`);
  for (const each of names) {
    const field = (fields as Fields)[each];
    if (typeof field?.kind !== "string") refuse(`${what}: field ${each} has no type, as in u32()`);
    if (each === "__proto__") refuse(`${what}: a field cannot be named __proto__`);
    if (field.autoIncrement) refuse(`${what}: field ${each} cannot be an autoIncrement()`);
  }
  return Object.freeze({ ...(fields as Fields) });
}

function kindsIn(
  given: string | readonly string[] | undefined,
  kinds: ReadonlyMap<string, Fields>,
  refuse: (why: string) => never,
): readonly string[] | undefined {
  if (given === undefined) return undefined;
  const names = typeof given === "string" ? [given] : given;
  if (!Array.isArray(names) || names.length === 0) refuse(`${show(given)} names no kinds`);
  for (const each of names) {
    if (!kinds.has(each)) refuse(`there is no kind ${show(each)}`);
  }
  return names;
}

function textsOf(fields: Fields): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([each, field]) => [each, fieldText(field)]),
  );
}

function isSame(one: Record<string, string>, other: Record<string, string>): boolean {
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
  );
}

function difference(
  what: string,
  stored: Record<string, string>,
  own: Record<string, string>,
): string {
  const shown = (texts: Record<string, string>): string =>
    Object.entries(texts)
      .map(([name, text]) => `${name}: ${text}`)
      .join(", ");
  return `${what} has the fields { ${shown(stored)} } there, and { ${shown(own)} } here`;
}

function isName(name: unknown): name is string {
  const bytes = typeof name === "string" ? Buffer.byteLength(name) : 0;
  return bytes > 0 && bytes <= MAX_NAME_BYTES / 2;
}

function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
