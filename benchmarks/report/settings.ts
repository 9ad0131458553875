// How each engine was set up: the same settings are said once, with the cells that had them.
import { durabilityTitle, engineTitle, workloadTitle } from "./format.ts";
import type { SuiteResult } from "./result.ts";

export interface EngineSettings {
  readonly title: string;
  readonly settings: string;
  /** "in memory", or the cells if the settings are not those of all cells of a durability. */
  readonly where: readonly string[];
}

export function settingsOf(result: SuiteResult): EngineSettings[] {
  const found = new Map<string, EngineSettings & { readonly where: string[] }>();
  for (const { engine } of result.engines) {
    for (const cell of result.cells) {
      const settings = cell.entries.find((entry) => entry.engine === engine)?.settings;
      if (settings === undefined) continue;
      const key = `${engine} ${settings}`;
      const known = found.get(key) ?? { title: engineTitle(result, engine), settings, where: [] };
      found.set(key, known);
      const isUniform = result.cells.every(
        (other) =>
          other.durability !== cell.durability ||
          (other.entries.find((entry) => entry.engine === engine)?.settings ?? settings) ===
            settings,
      );
      const where = isUniform
        ? durabilityTitle(cell.durability)
        : `${workloadTitle(cell.workload)} ${durabilityTitle(cell.durability)}, ${cell.processes}p`;
      if (!known.where.includes(where)) known.where.push(where);
    }
  }
  return [...found.values()];
}
