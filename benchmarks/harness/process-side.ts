// Measuring in other processes, the side of such a process: says that it is ready, then does what
// it is told, one thing after the other. An error ends the process, which its parent notices.
import type { FromProcess, ToProcess } from "./processes.ts";

export interface Service<To, From> {
  /** May answer in the middle, to say how far it is, before it does something that blocks. */
  handle(message: To, answer: (message: From) => void): void | Promise<void>;
  close(): Promise<void>;
}

/** What the parent passed to `MeasuringProcess.start`. */
export function taskOf<Task>(): Task {
  return JSON.parse(process.argv[2]) as Task;
}

export function serve<To, From>({ handle, close }: Service<To, From>): void {
  const send = (message: FromProcess<From>): void => {
    process.send?.(message);
  };
  const answer = (message: From): void => send({ message });
  let before = Promise.resolve();
  process.on("message", (message: ToProcess<To>) => {
    before = before.then(async () => {
      if ("message" in message) return handle(message.message, answer);
      await close();
      process.disconnect();
    });
  });
  send({ ready: true });
}
