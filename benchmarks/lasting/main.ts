// `npm run bench -- lasting`: what keeps a store useful for years: indexes that cost little log, transactions of
// any size, changes of the schema beside other work, a change feed, rows as text.
import { runMeasures } from "../trust/run.ts";
import { largeTransaction } from "./large-transaction.ts";
import { logBytes } from "./log-bytes.ts";
import { migrate } from "./migrate.ts";
import { orderTransaction } from "./order-transaction.ts";
import { transfer } from "./transfer.ts";
import { watch } from "./watch.ts";

await runMeasures("lasting", [
  logBytes,
  orderTransaction,
  largeTransaction,
  migrate,
  watch,
  transfer,
]);
