// `npm run bench -- graph-counts`: what is counted of graphs, and not timed. `npm run bench -- graph` runs it after the
// workloads.
import { runMeasures } from "../trust/run.ts";
import { edgeBytes } from "./edge-bytes.ts";
import { reads } from "./reads.ts";

await runMeasures("graph-counts", [edgeBytes, reads]);
