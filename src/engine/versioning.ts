/**
 * Whether commits keep old versions for snapshots: always. The build that measures what this costs
 * those who take no snapshots (`npm run bench -- snapshots`) has
 * benchmarks/snapshots/without-versioning.ts in place of this module.
 */
export const VERSIONING = true;
