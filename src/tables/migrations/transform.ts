/**
 * How rows of a table become rows of its successor. Works on decoded rows, field by field, so it knows
 * nothing of layouts: a field is copied, converted to a wider or narrower type, or the same for all rows.
 * Every row goes through this, so the code is generated, as that of codecs is: each new row is one
 * literal. Names go into the code as JSON strings only.
 */

import { compile } from "../codec/compile.ts";
import { keyIn } from "../indexes/entries.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { Table } from "../table.ts";
import { converted } from "./conversion.ts";
import type { FieldSource } from "./stored.ts";
import { loadValue } from "./stored-value.ts";

interface Copied {
  readonly name: string;
  readonly from: string;
  /** The type to convert to; `undefined` if values stay as they are. */
  readonly kind: string | undefined;
}

interface Generated {
  rowOf(row: RowValues): RowValues;
  keyOf(row: RowValues): unknown;
}

export class Transform {
  readonly #next: Table;
  readonly #old: Table;
  /** The new row that an old one becomes. */
  readonly rowOf: (row: RowValues) => RowValues;
  /** The new key of an old row. */
  readonly keyOf: (row: RowValues) => unknown;
  /** Copied fields by the name of the old one. */
  readonly #byOld = new Map<string, Copied>();
  readonly #values: RowValues = {};
  /** The old fields that the new key is made of. */
  readonly keySources: ReadonlySet<string>;
  /** Whether the new key follows from the old one, without the rest of the row. */
  readonly isKeyed: boolean;
  /** Whether the new key is written the same as the old one. */
  readonly #isSameKey: boolean;
  /** Whether changes are the same afterwards: no field has another name or type, and none is dropped. */
  readonly #isSameChange: boolean;
  /** Whether two rows with different keys have different keys afterwards, too. */
  readonly isOneToOne: boolean;

  constructor(old: Table, next: Table, sources: Readonly<Record<string, FieldSource>>) {
    this.#old = old;
    this.#next = next;
    for (const name of Object.keys(next.fields)) {
      const source = sources[name];
      if ("value" in source) {
        this.#values[name] = loadValue(source.value);
        continue;
      }
      const isSame = old.fields[source.from].kind === next.fields[name].kind;
      const kind = isSame ? undefined : next.fields[name].kind;
      const each = { name, from: source.from, kind };
      this.#byOld.set(source.from, each);
    }
    const keySources = next.key.flatMap((name) => {
      const source = sources[name];
      return "from" in source ? [source.from] : [];
    });
    this.keySources = new Set(keySources);
    this.isKeyed = keySources.every((name) => old.key.includes(name));
    this.isOneToOne = old.key.every((name) => this.keySources.has(name));
    const code = this.#code(next, sources);
    this.rowOf = code.rowOf;
    this.keyOf = code.keyOf;
    const isKept = (name: string): boolean => {
      const each = this.#byOld.get(name);
      return each?.name === name && each.kind === undefined;
    };
    this.#isSameChange = Object.keys(old.fields).every(isKept);
    this.#isSameKey =
      old.singleKey === next.singleKey &&
      old.key.length === next.key.length &&
      old.key.every((name, i) => this.#byOld.get(name)?.name === next.key[i]) &&
      old.key.every((name) => this.#byOld.get(name)?.kind === undefined);
  }

  /** The same for changes of a row; `undefined` if they are of fields that are dropped. */
  changesOf(changes: Partial<RowValues>): Partial<RowValues> | undefined {
    if (this.#isSameChange) return changes;
    let made: RowValues | undefined;
    for (const name of Object.keys(changes)) {
      const each = this.#byOld.get(name);
      if (each === undefined) continue;
      made ??= {};
      made[each.name] = this.#valueOf(each, changes[name]);
    }
    return made;
  }

  /** The new key that follows from the old one, where `isKeyed`. */
  keyFrom(key: unknown): unknown {
    if (this.#isSameKey) return key;
    const { key: names, singleKey } = this.#old;
    const row: RowValues = {};
    if (singleKey) row[names[0]] = key;
    else for (let i = 0; i < names.length; i++) row[names[i]] = (key as unknown[])[i];
    const made: RowValues = { ...this.#values };
    for (const from of this.keySources) {
      const each = this.#byOld.get(from)!;
      made[each.name] = this.#valueOf(each, row[from]);
    }
    return keyIn(made, this.#next.key, this.#next.singleKey);
  }

  /** Whether a new row was made of the old row with this key, as far as its fields tell. */
  isOf(made: RowValues, row: RowValues): boolean {
    const expected = this.rowOf(row);
    return this.#old.key.every((name) => {
      const each = this.#byOld.get(name);
      return each === undefined || sameKeyValue(made[each.name], expected[each.name]);
    });
  }

  #code(next: Table, sources: Readonly<Record<string, FieldSource>>): Generated {
    const names = Object.keys(next.fields);
    const expressionOf = (name: string): string => {
      const source = sources[name];
      if ("value" in source) return `constants[${JSON.stringify(name)}]`;
      const value = `row[${JSON.stringify(source.from)}]`;
      const each = this.#byOld.get(source.from)!;
      return each.kind === undefined ? value : `convert(${JSON.stringify(source.from)}, ${value})`;
    };
    const key = next.key.map(expressionOf);
    const make = compile(
      `"use strict";
return {
  rowOf(row) {
    return { ${names.map((name) => `${JSON.stringify(name)}: ${expressionOf(name)}`).join(", ")} };
  },
  keyOf(row) {
    return ${next.singleKey ? key[0] : `[${key.join(", ")}]`};
  },
};`,
      ["constants", "convert"],
    );
    const convert = (from: string, value: unknown): unknown =>
      this.#valueOf(this.#byOld.get(from)!, value);
    return make(this.#values, convert) as Generated;
  }

  #valueOf({ name, kind }: Copied, value: unknown): unknown {
    if (kind === undefined) return value;
    return converted(value, kind, () => `field ${name} of table ${this.#next.name}`);
  }
}

function sameKeyValue(a: unknown, b: unknown): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  if (a instanceof Date && b instanceof Date) return a.getTime() === b.getTime();
  return a === b;
}
