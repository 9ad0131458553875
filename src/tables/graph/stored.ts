/**
 * A graph as its store has it, for those who copy graphs without having declared them: as if a program had declared all
 * of it. The store does not know which kinds an association leads from and to; here any kind will do.
 */

import { SituError } from "../../runtime/errors.ts";
import { show } from "../../runtime/show.ts";
import { fieldFromText } from "../field-text.ts";
import type { Fields } from "../table.ts";
import type { DeclaredGraph, StoredGraph } from "./definition.ts";

/** What comes from a file is looked through: SITU_CORRUPT says what is wrong with it. */
export function declarationOf(name: string, stored: StoredGraph): DeclaredGraph {
  const refuse = (why: string): never => {
    throw new SituError(
      "SITU_CORRUPT",
      `the definition of graph ${show(name)} makes no sense: ${why}`,
    );
  };
  const listOf = (given: unknown): readonly unknown[][] =>
    Array.isArray(given) && given.every((each) => Array.isArray(each))
      ? given
      : refuse("kinds and types must be lists");
  const fieldsOf = (of: unknown, texts: unknown): Fields => {
    if (typeof texts !== "object" || texts === null) refuse(`${show(of)} has no fields`);
    const fields = Object.entries(texts as object).map(([each, text]) => [
      each,
      fieldFromText(String(text), refuse),
    ]);
    return Object.fromEntries(fields) as Fields;
  };
  const kinds = new Map<string, Fields>();
  for (const [kind, texts] of listOf(stored?.kinds)) {
    kinds.set(String(kind), fieldsOf(kind, texts));
  }
  const types: Map<string, DeclaredType> = new Map();
  for (const [type, texts, inverse = null] of listOf(stored.types)) {
    types.set(String(type), {
      name: String(type),
      fields: fieldsOf(type, texts),
      inverse: inverse === null ? undefined : String(inverse),
      from: undefined,
      to: undefined,
    });
  }
  for (const { name: type, inverse } of types.values()) {
    if (inverse !== undefined && types.get(inverse)?.inverse !== type) {
      refuse(`association ${show(type)} is not the inverse of ${show(inverse)}`);
    }
  }
  return { kinds, types };
}

type DeclaredType = DeclaredGraph["types"] extends ReadonlyMap<string, infer T> ? T : never;
