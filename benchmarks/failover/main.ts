// `npm run bench -- failover`: what clients of a cluster see while its nodes die and join, while its etcd is
// away, and what it costs when nothing happens. Four nodes, three copies of each row, real processes on loopback.
import { runMeasures } from "../trust/run.ts";
import { copying } from "./copying.ts";
import { faultFree } from "./fault-free.ts";
import { kills } from "./kills.ts";
import { suspicions } from "./suspicions.ts";
import { withoutEtcd } from "./without-etcd.ts";

await runMeasures("failover", [kills, suspicions, copying, withoutEtcd, faultFree]);
