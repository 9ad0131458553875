/**
 * To be imported before anything of src/: every store of the protocols that others can see is then
 * an `Atomics` call, so that a test can stop at it (src/memory/ordering.ts).
 */
if (process.env.SITU_TESTS_SHARE_PROCESS !== undefined) {
  throw new Error("this test file needs a process of its own: name it in tests/tiers.ts");
}
process.env.SITU_ATOMICS = "all";
