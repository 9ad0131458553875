/**
 * The colours of all charts and of the page. An engine has the same one everywhere: Situ is warm,
 * its cluster amber or brown, the peers are cool. They were searched for (OKLab distance after
 * Machado et al. 2009) to stay apart for people with protanopia, deuteranopia and tritanopia, and
 * have at least 3 : 1 against their ground; texts have 4.5 : 1 and are never in an engine's colour.
 * Charts also name each engine in text or give it a mark of its own.
 */
import { type EngineName, engineNames } from "../../engines/engine.ts";

export interface Palette {
  readonly engines: Readonly<Record<EngineName, string>>;
  /** Of the page, and of the cards that charts stand on. */
  readonly page: string;
  readonly ground: string;
  readonly text: string;
  readonly muted: string;
  readonly axis: string;
  readonly grid: string;
  readonly good: string;
  readonly bad: string;
}

export const lightPalette: Palette = {
  engines: {
    situ: "#df5d02",
    cluster: "#68500b",
    lmdb: "#2b9f93",
    sqlite: "#3a3d4b",
    redis: "#a1358e",
    postgres: "#5664db",
  },
  page: "#f6f5f2",
  ground: "#ffffff",
  text: "#1d1f24",
  muted: "#5b606b",
  axis: "#7f8590",
  grid: "#e4e4e0",
  good: "#1a7340",
  bad: "#b3261e",
};

export const darkPalette: Palette = {
  engines: {
    situ: "#fd6d0d",
    cluster: "#ffd270",
    lmdb: "#2ba298",
    sqlite: "#cde1ea",
    redis: "#f282f7",
    postgres: "#5e6cb9",
  },
  page: "#0f1116",
  ground: "#171a21",
  text: "#eceef2",
  muted: "#a3aab8",
  axis: "#7d8493",
  grid: "#2b303b",
  good: "#5fd08a",
  bad: "#ff8a80",
};

/** ECharts hands colours through as they are, so one drawing serves both schemes. */
export const variablePalette: Palette = {
  engines: Object.fromEntries(
    engineNames.map((engine) => [engine, `var(--engine-${engine})`]),
  ) as Record<EngineName, string>,
  page: "var(--page)",
  ground: "var(--ground)",
  text: "var(--text)",
  muted: "var(--muted)",
  axis: "var(--axis)",
  grid: "var(--grid)",
  good: "var(--good)",
  bad: "var(--bad)",
};

/** The declarations that `variablePalette` refers to. */
export function paletteDeclarations({ engines, ...others }: Palette): string {
  return [
    ...Object.entries(engines).map(([engine, color]) => `--engine-${engine}: ${color};`),
    ...Object.entries(others).map(([name, color]) => `--${name}: ${color};`),
  ].join(" ");
}

/** The mark of an engine on its lines, by ECharts' names. The cluster's is hollow. */
export const engineSymbols: Readonly<Record<EngineName, string>> = {
  situ: "circle",
  cluster: "circle",
  lmdb: "triangle",
  sqlite: "rect",
  redis: "diamond",
  postgres: "roundRect",
};
