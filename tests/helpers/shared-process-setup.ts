/**
 * Runs before each file of a tier whose files share processes: what one of them sets before modules are
 * loaded would come too late, and hold for those after it (engine-all-atomics.ts). Not in the
 * environment: child processes are not shared.
 */
Object.assign(globalThis, { situTestsShareProcess: true });
