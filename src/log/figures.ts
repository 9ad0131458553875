/** Figures about the log and the checkpoints, in the control segment. Only the log writer writes them. */

import { LOG_FIGURES_F64 } from "../memory/control.ts";
import type { StoreMemory } from "../memory/store-memory.ts";

export const FIGURES = [
  /** Written to segments in all, with headers and padding. */
  "logBytes",
  "batches",
  "records",
  /** The segment that is being written. */
  "segment",
  "checkpoints",
  "failedCheckpoints",
  /** About the last checkpoint. */
  "checkpointEpoch",
  "checkpointBytes",
  "checkpointMs",
  /** 1 if it was incremental. */
  "checkpointIsDelta",
  /** When it was begun (wall clock), and `logBytes` then. */
  "checkpointAtMs",
  "checkpointLogBytes",
  /** And the segment that was being written. */
  "checkpointSegment",
  /** The last segment that was there when this memory was made: its own come after it. */
  "originSegment",
] as const;
export type Figure = (typeof FIGURES)[number];

export function figureOf(memory: StoreMemory, figure: Figure): number {
  return memory.control.f64[LOG_FIGURES_F64 + FIGURES.indexOf(figure)];
}

export function setFigure(memory: StoreMemory, figure: Figure, value: number): void {
  memory.control.f64[LOG_FIGURES_F64 + FIGURES.indexOf(figure)] = value;
}

export function addToFigure(memory: StoreMemory, figure: Figure, value: number): void {
  memory.control.f64[LOG_FIGURES_F64 + FIGURES.indexOf(figure)] += value;
}
