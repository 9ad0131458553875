// `npm run bench -- bulk`: aggregates and updates over all rows of a table: by programs, by hand with scan and
// update, and by SQLite and PostgreSQL. All in one run, on the same rows.
import { runMeasures } from "../trust/run.ts";
import { aggregates } from "./aggregates.ts";
import { updates } from "./updates.ts";

await runMeasures("bulk", [aggregates, updates]);
