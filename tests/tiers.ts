/**
 * Which tests run when. A file that no other tier names belongs to `unit`.
 *
 *   unit        quick, nothing listens and nothing is started (helpers/unit-setup.ts sees to that): to
 *               run after each change
 *   unit-steps  the same, of files that stop at single atomic steps (helpers/engine-all-atomics.ts)
 *   models      in one process too, but long: random models, simulated clusters
 *   model-steps the same, of files that stop at single atomic steps: every crash point
 *   processes   real processes, threads that share a store, sockets, clusters
 *   peers       what needs redis-server, PostgreSQL, etcd, Chromium or the packages in benchmarks/peers
 *   nodes       the package on other versions of Node.js
 *   mocked      like models, but with vi.mock(): these load sources (tests/compiled-modules.ts)
 *
 * Of `unit`, `models` and both kinds of steps, a few processes run all files, one after the other, with
 * modules loaded and code compiled (docs/decisions/0080). Other files have a process each.
 */

export const TIERS = {
  models: [
    "tests/bulk/expressions.test.ts",
    "tests/checkers/{oracle,planted-bugs,serial-histories}.test.ts",
    "tests/database/durability-checkpoints.test.ts",
    "tests/database/{fields,index-build,indexes,log-bytes}.test.ts",
    "tests/database/isolation.test.ts",
    "tests/database/lifecycle.test.ts",
    "tests/database/migrate{,-online}.test.ts",
    "tests/database/log-end.test.ts",
    "tests/database/record-log.test.ts",
    "tests/database/recovery-checkpoints.test.ts",
    "tests/database/reentrant.test.ts",
    "tests/database/remote-scan*.test.ts",
    "tests/database/snapshot-isolation-large.test.ts",
    "tests/database/snapshots.test.ts",
    "tests/database/wide-rows.test.ts",
    "tests/device/**",
    "tests/engine/snapshots-model.test.ts",
    "tests/graph/{cluster,model}.test.ts",
    "tests/log/crash-points*.test.ts",
    "tests/log/faults-*.test.ts",
    "tests/log/log-{power-loss,reader}.test.ts",
    "tests/membership/simulation.test.ts",
    "tests/memory/slabs.test.ts",
    "tests/bulk/places.test.ts",
    "tests/papers/{farm,fasst,neodbms,round-trips,xenic}.test.ts",
    "tests/nam/{deaths,figures,hazards,memory-deaths,simulation}.test.ts",
    "tests/xenic/{deaths,figures,simulation}.test.ts",
    "tests/copying/random.test.ts",
    "tests/recovery/{model,recovery,store-replica}.test.ts",
    "tests/report/pages.test.ts",
    "tests/scripts/cluster-scripts.test.ts",
    "tests/simulation/{clients,coordinator-stopped,crashes,failover,fabric-*}.test.ts",
    "tests/simulation/{living,planted-bugs,seeds,snapshots}.test.ts",
    "tests/stores/*-{conflicts,growth}.test.ts",
    "tests/stores/{btree,buckets,hash-seeds,hopscotch,remote,remote-threads,robinhood}.test.ts",
    "tests/tools/{check-*,copy,verify,verify-damage}.test.ts",
    "tests/transfer/{stores,tables}.test.ts",
    "tests/workloads/{objects,retwis,smallbank,tatp,tpcc,ycsb}.test.ts",
  ],
  "model-steps": [
    "tests/engine/commit.test.ts",
    "tests/engine/{,large-record-,resize-,sequence-,splices-}crash-points.test.ts",
    "tests/engine/snapshots-{crash-points,races}.test.ts",
    "tests/graph/crash-points.test.ts",
    "tests/log/checkpoint-model.test.ts",
    "tests/papers/namdb.test.ts",
    "tests/processes/planted-steps.test.ts",
  ],
  processes: [
    "tests/cli/{commands,living,serve,shell,shell-transaction,transfer}.test.ts",
    "tests/cluster/**",
    "tests/database/{bad-input,bad-paths,copied-folder,durability,durability-faults}.test.ts",
    "tests/database/{durability-options,foreign-memory,memory-*,objects,recovery}.test.ts",
    "tests/database/{joining,recovery-damage,recovery-killed,recovery-room,schema}.test.ts",
    "tests/database/{second-memory,microtask-queue}.test.ts",
    "tests/database/{resize,resize-*,store-files,store-full,threads,transact,watch}.test.ts",
    "tests/examples/**",
    "tests/fabric/tcp*.test.ts",
    "tests/gateways/*.test.ts",
    "tests/gateways/resp/live-fuzz.test.ts",
    "tests/metrics/{documents,endpoint,processes}.test.ts",
    "tests/nam/sockets.test.ts",
    "tests/xenic/nodes.test.ts",
    "tests/node/**",
    "tests/processes/**",
    "tests/simulation/{command,determinism}.test.ts",
    "tests/upgrade/**",
    "tests/workloads/{cluster,situ,tpcc-cluster,tpcc-killed}.test.ts",
  ],
  peers: [
    "tests/etcd/**",
    "tests/gateways/redis/**",
    "tests/report/{browser,social}.test.ts",
    "tests/suite/whole-runs.test.ts",
    "tests/workloads/{lmdb,peers,postgres,redis,sqlite}.test.ts",
  ],
  nodes: ["tests/nodes/**"],
  "unit-steps": [
    "tests/engine/{deaths,executor,prepared-crash-points,tid,priority-crash-points}.test.ts",
    "tests/log/checkpoint-edits.test.ts",
    "tests/memory/{blocks,closings,closings-races}.test.ts",
    "tests/scripts/local.test.ts",
    "tests/stores/{cut-rows,lookup-races}.test.ts",
  ],
  mocked: [
    "tests/database/expiry.test.ts",
    "tests/log/crash-points.test.ts",
    "tests/log/crash-points-commit.test.ts",
    "tests/log/crash-points-writer.test.ts",
    "tests/log/faults-damage.test.ts",
    "tests/log/faults-disk.test.ts",
    "tests/log/faults-recovery.test.ts",
  ],
} as const;

/**
 * What takes longest in each tier, longest first: a long file that starts last keeps one core idle. On a
 * machine that has run the tests before, vitest remembers what each file took.
 */
export const LONGEST = [
  "tests/nodes/package.test.ts",
  "tests/nodes/smoke.test.ts",
  "tests/suite/whole-runs.test.ts",
  "tests/report/browser.test.ts",
  "tests/etcd/operators.test.ts",
  "tests/cluster/failover.test.ts",
  "tests/cluster/restarts.test.ts",
  "tests/processes/mixed-storm.test.ts",
  "tests/examples/cluster.test.ts",
  "tests/cluster/following.test.ts",
  "tests/database/recovery.test.ts",
  "tests/cluster/histories.test.ts",
  "tests/processes/crash-points.test.ts",
  "tests/cli/commands.test.ts",
  "tests/processes/anomalies.test.ts",
  "tests/cluster/failover-clients.test.ts",
  "tests/cluster/same-as-local.test.ts",
  "tests/cluster/calls.test.ts",
  "tests/database/durability.test.ts",
  "tests/cli/shell.test.ts",
  "tests/log/crash-points-writer.test.ts",
  "tests/database/index-build.test.ts",
  "tests/database/durability-checkpoints.test.ts",
  "tests/simulation/seeds.test.ts",
  "tests/database/recovery-checkpoints.test.ts",
  "tests/stores/buckets-conflicts.test.ts",
  "tests/engine/snapshots-crash-points.test.ts",
];
