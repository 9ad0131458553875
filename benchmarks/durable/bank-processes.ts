// Starting processes that have a store open. Each turn has new ones: V8 optimizes the same loop a
// little differently in every process, and the luck of one must not be a whole run's.
import { MeasuringProcess } from "../harness/processes.ts";
import type { BankTask, Order, Outcome } from "./bank-process.ts";

export type BankProcess = MeasuringProcess<Order, Outcome>;

export function startBankProcess(task: BankTask): Promise<BankProcess> {
  return MeasuringProcess.start(new URL("./bank-process.js", import.meta.url), task);
}

/** One process for each task, all open before `use` is called, and stopped after it. */
export async function inBankProcesses<T>(
  tasks: readonly BankTask[],
  use: (processes: readonly BankProcess[]) => Promise<T>,
): Promise<T> {
  const processes = await Promise.all(tasks.map(startBankProcess));
  const result = await use(processes);
  await Promise.all(processes.map((process) => process.stop()));
  return result;
}

export function inBankProcess<T>(
  task: BankTask,
  use: (process: BankProcess) => Promise<T>,
): Promise<T> {
  return inBankProcesses([task], ([process]) => use(process));
}
