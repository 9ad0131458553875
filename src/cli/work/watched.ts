/** Runs a tool with a line of progress, which is gone when it has ended, however it has. */

import { ProgressLine } from "../progress.ts";
import type { Context } from "./context.ts";

export async function watched<T>(
  { screen, signal }: Context,
  what: string,
  tool: (options: { signal: AbortSignal; onProgress: ProgressLine["show"] }) => Promise<T>,
): Promise<T> {
  const line = new ProgressLine(screen, what);
  try {
    return await tool({ signal, onProgress: line.show });
  } finally {
    line.clear();
  }
}
