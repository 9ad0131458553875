/** A schema as it is kept in the store, and the difference between two. */

import type { FieldKind } from "./fields.ts";
import type { Table } from "./table.ts";

/** Field order does not matter, neither to the layout of rows nor here; the key's order does. */
export interface StoredSchema {
  readonly name: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly key: readonly string[];
}

function describe(kind: FieldKind, max: number | undefined): string {
  return max === undefined ? kind : `${kind}(${max})`;
}

export function schemaOf(table: Table): StoredSchema {
  const fields: Record<string, string> = {};
  for (const name of Object.keys(table.fields).sort()) {
    fields[name] = describe(table.fields[name].kind, table.fields[name].max);
  }
  return { name: table.name, fields, key: table.key };
}

/** One line for each thing that differs; empty if nothing does. */
export function differences(stored: StoredSchema, wanted: StoredSchema): string[] {
  const lines: string[] = [];
  for (const [name, kind] of Object.entries(stored.fields)) {
    const other = Object.hasOwn(wanted.fields, name) ? wanted.fields[name] : undefined;
    if (other === undefined) lines.push(`- ${name}: ${kind} (only in the store)`);
    else if (other !== kind) lines.push(`~ ${name}: ${kind} in the store, ${other} here`);
  }
  for (const [name, kind] of Object.entries(wanted.fields)) {
    if (!Object.hasOwn(stored.fields, name)) lines.push(`+ ${name}: ${kind} (only here)`);
  }
  if (JSON.stringify(stored.key) !== JSON.stringify(wanted.key)) {
    lines.push(`~ key: ${stored.key.join(", ")} in the store, ${wanted.key.join(", ")} here`);
  }
  return lines;
}
