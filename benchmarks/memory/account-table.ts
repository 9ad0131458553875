// The table of accounts, in any build of Situ: this file imports nothing of it but types.
import type * as situ from "situ";

export type SituModule = typeof situ;

export const accountFields = ({ f64, i64, u32 }: SituModule) => ({
  id: u32(),
  balance: i64(),
  a: f64(),
  b: f64(),
  c: f64(),
  d: f64(),
  e: f64(),
});

export const accountTable = (build: SituModule) =>
  build.table("account", accountFields(build), { key: "id" });

export type AccountTable = ReturnType<typeof accountTable>;
