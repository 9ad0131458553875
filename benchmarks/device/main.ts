// `npm run bench -- device`: tables on the device that the device's threads scan and change, against PostgreSQL on the
// same disk. All in one run, on the same rows.
import { runMeasures } from "../trust/run.ts";
import { beside } from "./beside.ts";
import { operations } from "./operations.ts";

await runMeasures("device", [operations, beside]);
