/**
 * Runs before each file of the tier `unit`, whose files share processes: what one of them sets before
 * modules are loaded would come too late, and hold for those after it (engine-all-atomics.ts).
 */
process.env.SITU_TESTS_SHARE_PROCESS = "1";
