/** The table of tests/nam on sockets. */

import { i32, str, table, u32 } from "../../src/index.ts";

export const Account = table("account", { id: u32(), balance: i32(), owner: str() }, { key: "id" });
export const ACCOUNTS = 12;
export const BALANCE = 100;
