/** What a migration does to a table, one thing after the other. */

import { SituError } from "../../runtime/errors.ts";
import type { IndexDefinition } from "../indexes/definition.ts";
import type { CatalogueTable } from "../indexes/table-store.ts";
import type { Schema } from "../schema.ts";
import type { FieldSource, SchemaHistory } from "./stored.ts";

/** The schema that a table gets, and where its fields come from. */
export interface CopyTarget {
  readonly schema: Schema & SchemaHistory;
  readonly sources: Readonly<Record<string, FieldSource>>;
}

export type Action = { readonly table: CatalogueTable; readonly lines: readonly string[] } & (
  | { readonly what: "finish" }
  | { readonly what: "copy"; readonly target: CopyTarget }
  | { readonly what: "build index"; readonly index: IndexDefinition }
  | { readonly what: "replace index"; readonly index: IndexDefinition }
  | { readonly what: "drop index"; readonly index: string }
  | { readonly what: "rename table"; readonly to: string }
  | { readonly what: "drop table" }
);

export function refusal(table: string, why: string): SituError {
  return new SituError("SITU_SCHEMA", `table ${table} cannot be migrated: ${why}`);
}
