/**
 * The type of a field as the schema of a store has it, and back: `u32`, `str(80)`, `nullable(u32)`,
 * `autoIncrement(u53)`, `enumOf("draft","sent")`. Two fields with the same text are stored in the same
 * way. What only changes how a program sees values, as Dates or as numbers, is not part of it.
 */

import { autoIncrement, enumOf, type Field, type FieldKind, nullable } from "./fields.ts";

/** Whether a field of the kind may have a length. */
const KINDS: Readonly<Record<Exclude<FieldKind, "enum">, boolean>> = {
  u8: false,
  u16: false,
  u32: false,
  i32: false,
  u53: false,
  i53: false,
  f64: false,
  bool: false,
  u64: false,
  i64: false,
  str: true,
  bytes: true,
  json: false,
  pointer: false,
  timestamp: false,
  uuid: false,
};

export function fieldText(field: Field): string {
  const { kind, max, values } = field;
  if (field.nullable) return `nullable(${fieldText(withoutNull(field))})`;
  if (field.autoIncrement) return `autoIncrement(${kind})`;
  if (values !== undefined) return `enumOf(${JSON.stringify(values).slice(1, -1)})`;
  return max === undefined ? kind : `${kind}(${max})`;
}

/** The field of a text, which may be anything. */
export function fieldFromText(text: unknown, refuse: (why: string) => never): Field {
  const [, around, inner] = /^(nullable|autoIncrement|enumOf)\((.*)\)$/s.exec(String(text)) ?? [];
  try {
    if (around === "nullable") return nullable(fieldFromText(inner, refuse) as Field<never, "u8">);
    if (around === "autoIncrement") {
      return autoIncrement(fieldFromText(inner, refuse) as Field<number, "u53">);
    }
    if (around === "enumOf") return enumOf(...(JSON.parse(`[${inner}]`) as [string]));
  } catch {
    return refuse(`${JSON.stringify(text)} is no type of a field`);
  }
  return plainField(text, refuse);
}

/** The field of a text; `undefined` if it is the type of none. */
export function knownField(text: unknown): Field | undefined {
  const none = {};
  try {
    return fieldFromText(text, () => {
      throw none;
    });
  } catch {
    return undefined;
  }
}

function plainField(text: unknown, refuse: (why: string) => never): Field {
  const found = /^([a-z0-9]+)(?:\(([1-9]\d{0,8})\))?$/.exec(String(text));
  const kind = found?.[1] ?? "";
  if (found === null || !Object.hasOwn(KINDS, kind)) {
    return refuse(`${JSON.stringify(text)} is no type of a field`);
  }
  const max = found[2] === undefined ? undefined : Number(found[2]);
  if (max !== undefined && !KINDS[kind as "u8"]) return refuse(`${kind} has no length`);
  return Object.freeze({ kind: kind as FieldKind, max });
}

function withoutNull({ nullable: _, ...field }: Field): Field {
  return field;
}
