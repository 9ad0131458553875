/**
 * Tables made from the schemas in a store, for tools that must work on any store without knowing
 * what its users have declared. Such a table has the same fields, key and indexes as the one that
 * was declared, so the same layout of rows, and the same schema text. Only one thing is not in the
 * store: whether a key of one field is written as a value or as a list of one. Here it is a value.
 */

import { SituError } from "../runtime/errors.ts";
import { show } from "../runtime/show.ts";
import { EXPIRY_INDEX } from "./expiry/expiry.ts";
import { fieldFromText } from "./field-text.ts";
import type { IndexDefinition } from "./indexes/definition.ts";
import { isForChange } from "./indexes/replaced-names.ts";
import { partsOfLayout, type Schema } from "./schema.ts";
import { type Fields, type Table, table } from "./table.ts";

/** The table of a schema that was read from a store. SITU_CORRUPT if it can be no schema. */
export function tableFromSchema(stored: Schema): Table {
  const refuse = (why: string, cause?: unknown): never => {
    const what = `the schema of table ${show(stored?.name)} in the store makes no sense: ${why}`;
    throw new SituError("SITU_CORRUPT", what, { cause });
  };
  if (typeof stored !== "object" || stored === null) return refuse("it is no object");
  const { name, fields, key, ordered, layout, indexes, expires } = stored;
  if (typeof fields !== "object" || fields === null) return refuse("it has no fields");
  if (!isNames(key)) return refuse("it has no key");
  if (!Array.isArray(indexes)) return refuse("it has no list of indexes");
  const declared: Fields = Object.fromEntries(
    Object.entries(fields).map(([each, text]) => [each, fieldFromText(text, refuse)]),
  );
  const definitions = (indexes as readonly IndexDefinition[]).map((each) => {
    if (isNames([each?.name]) && isNames(each.on)) return definitionIn(each);
    return refuse(`${show(each)} is no index: say which fields it is on`);
  });
  if (new Set(definitions.map((each) => each.name)).size < definitions.length) {
    return refuse("two indexes have the same name");
  }
  const parts = layout === undefined ? undefined : partsOfLayout(layout);
  if (layout !== undefined && parts === undefined) return refuse(`${show(layout)} is no layout`);
  try {
    const made = table(name, declared, {
      key: key.length === 1 ? key[0] : key,
      ordered,
      ...(parts === undefined ? {} : { layout: parts.kind, storage: parts.storage }),
      ...(expires === undefined ? {} : { expires }),
      // The one for the time comes with that.
      indexes: Object.fromEntries(
        definitions
          .filter(({ name }) => name !== EXPIRY_INDEX && !isForChange(name))
          .map(({ name: each, ...options }) => [each, options]),
      ),
    });
    // In the order of the store, which is that in which they were added.
    return Object.freeze({ ...made, indexes: Object.freeze(definitions) }) as Table;
  } catch (error) {
    return refuse((error as Error).message, error);
  }
}

/** Texts only: what becomes one as the name of a field is not yet one. */
function isNames(given: unknown): given is readonly string[] {
  return Array.isArray(given) && given.every((each) => typeof each === "string");
}

function definitionIn({ name, on, unique, kind }: IndexDefinition): IndexDefinition {
  return Object.freeze({ name, on: Object.freeze([...on]), unique, kind });
}
