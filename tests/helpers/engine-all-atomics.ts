/**
 * To be imported before anything of src/: every store of the protocols that others can see is then
 * an `Atomics` call, so that a test can stop at it (src/memory/ordering.ts).
 */
process.env.SITU_ATOMICS = "all";
