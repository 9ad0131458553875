/**
 * What `queueMicrotask` does, for less: that one makes a resource for async_hooks each time. What `run`
 * throws ends as it would there, as an uncaught error.
 */

const RESOLVED = Promise.resolve();

export function runAsMicrotask(run: () => void): void {
  void RESOLVED.then(() => {
    try {
      run();
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  });
}
