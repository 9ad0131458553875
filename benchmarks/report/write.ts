// Writes all that a run leaves behind into one folder.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { headlineChart, headlineHeight } from "./charts/headline.ts";
import { darkPalette, lightPalette, type Palette } from "./charts/palette.ts";
import { renderMarkdown } from "./markdown.ts";
import { againstBestPeers } from "./measures.ts";
import { renderPage } from "./page/page.ts";
import type { SuiteResult } from "./result.ts";

/** As wide as GitHub shows a README. */
const readmeWidth = 800;

export async function writeReport(result: SuiteResult, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const files: readonly (readonly [string, string])[] = [
    ["results.json", `${JSON.stringify(result, undefined, 2)}\n`],
    ["report.md", renderMarkdown(result)],
    ["report.html", renderPage(result)],
    ["chart-light.svg", readmeChart(result, lightPalette)],
    ["chart-dark.svg", readmeChart(result, darkPalette)],
  ];
  await Promise.all(files.map(([name, text]) => writeFile(join(folder, name), text)));
}

/** For users: always against the best peer, and without goals. */
function readmeChart(result: SuiteResult, palette: Palette): string {
  const shown = againstBestPeers(result);
  const height = headlineHeight(shown, readmeWidth);
  return `${headlineChart(shown, { width: readmeWidth, height, palette }, false)}\n`;
}
