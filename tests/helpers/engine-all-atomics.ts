/**
 * To be imported before anything of src/: every store of the protocols that others can see is then
 * an `Atomics` call, so that a test can stop at it (src/memory/ordering.ts).
 */
if ("situTestsShareProcess" in globalThis) {
  throw new Error("name this test file in a tier of tests/tiers.ts that stops at single steps");
}
process.env.SITU_ATOMICS = "all";
