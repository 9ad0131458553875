/**
 * How rows of a table become rows of its successor. Works on decoded rows, field by field, so it knows
 * nothing of layouts: a field is copied, converted to a wider or narrower type, or the same for all rows.
 */

import { keyIn } from "../indexes/entries.ts";
import type { Values } from "../indexes/structure.ts";
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

export class Transform {
  readonly #next: Table;
  readonly #old: Table;
  readonly #copied: readonly Copied[];
  /** Copied fields by the name of the old one. */
  readonly #byOld = new Map<string, Copied>();
  readonly #values: Values = {};
  /** The old fields that the new key is made of. */
  readonly keySources: ReadonlySet<string>;
  /** Whether the new key follows from the old one, without the rest of the row. */
  readonly isKeyed: boolean;
  /** Whether two rows with different keys have different keys afterwards, too. */
  readonly isOneToOne: boolean;

  constructor(old: Table, next: Table, sources: Readonly<Record<string, FieldSource>>) {
    this.#old = old;
    this.#next = next;
    const copied: Copied[] = [];
    for (const name of Object.keys(next.fields)) {
      const source = sources[name];
      if ("value" in source) {
        this.#values[name] = loadValue(source.value);
        continue;
      }
      const isSame = old.fields[source.from].kind === next.fields[name].kind;
      const kind = isSame ? undefined : next.fields[name].kind;
      const each = { name, from: source.from, kind };
      copied.push(each);
      this.#byOld.set(source.from, each);
    }
    this.#copied = copied;
    const keySources = next.key.flatMap((name) => {
      const source = sources[name];
      return "from" in source ? [source.from] : [];
    });
    this.keySources = new Set(keySources);
    this.isKeyed = keySources.every((name) => old.key.includes(name));
    this.isOneToOne = old.key.every((name) => this.keySources.has(name));
  }

  rowOf(row: Values): Values {
    const made: Values = { ...this.#values };
    for (const each of this.#copied) made[each.name] = this.#valueOf(each, row[each.from]);
    return made;
  }

  /** The same for changes of a row; `undefined` if they are of fields that are dropped. */
  changesOf(changes: Partial<Values>): Values | undefined {
    let made: Values | undefined;
    for (const name of Object.keys(changes)) {
      const each = this.#byOld.get(name);
      if (each === undefined) continue;
      made ??= {};
      made[each.name] = this.#valueOf(each, changes[name]);
    }
    return made;
  }

  /** The new key of an old row. */
  keyOf(row: Values): unknown {
    return keyIn(this.rowOf(row), this.#next.key, this.#next.singleKey);
  }

  /** The new key that follows from the old one, where `isKeyed`. */
  keyFrom(key: unknown): unknown {
    const { key: names, singleKey } = this.#old;
    const row: Values = {};
    if (singleKey) row[names[0]] = key;
    else for (let i = 0; i < names.length; i++) row[names[i]] = (key as unknown[])[i];
    const made: Values = { ...this.#values };
    for (const from of this.keySources) {
      const each = this.#byOld.get(from)!;
      made[each.name] = this.#valueOf(each, row[from]);
    }
    return keyIn(made, this.#next.key, this.#next.singleKey);
  }

  /** Whether a new row was made of the old row with this key, as far as its fields tell. */
  isOf(made: Values, row: Values): boolean {
    const expected = this.rowOf(row);
    return this.#old.key.every((name) => {
      const each = this.#byOld.get(name);
      return each === undefined || sameKeyValue(made[each.name], expected[each.name]);
    });
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
