// The report in a real browser, in both schemes, on a desk and on a telephone. Screenshots go to a
// temporary folder, or to SITU_SCREENSHOTS, where they stay.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { darkPalette, lightPalette } from "../../benchmarks/report/charts/palette.ts";
import { writeReport } from "../../benchmarks/report/write.ts";
import { type Box, launchBrowser, type ShownChart, type ShownText } from "./browser.ts";
import { contrast, parseColor } from "./colors.ts";
import { closeRace, fixtureResult } from "./fixture.ts";
import { countPixels, crop, decodePng, type Picture } from "./png.ts";

/** Bars, fourteen cells by throughput and by latency, two by processes. */
const chartCount = 1 + 14 * 2 + 2;

let browser: Browser;
let folder: string;
let screenshots: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "situ-browser-"));
  screenshots = process.env.SITU_SCREENSHOTS ?? join(folder, "screenshots");
  await mkdir(screenshots, { recursive: true });
  await writeReport(fixtureResult(), folder);
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

const looks = (["light", "dark"] as const).flatMap((scheme) =>
  [1280, 390].map((width) => ({ scheme, width })),
);

describe.each(looks)("$scheme, $width px wide", ({ scheme, width }) => {
  let page: Page;
  let pictures: Pictures;
  const complaints: string[] = [];
  const requests: string[] = [];

  beforeAll(async () => {
    page = await browser.newPage({ colorScheme: scheme, viewport: { width, height: 900 } });
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(pathToFileURL(join(folder, "report.html")).href);
    await page.addScriptTag({ path: join(import.meta.dirname, "in-page.js") });
    pictures = await picturesOf(page, `report-${scheme}-${width}`);
  });
  afterAll(() => page?.close());

  test("nothing is complained about, and nothing is fetched", () => {
    expect(complaints).toEqual([]);
    const fetched = requests.filter((url) => !url.startsWith("data:"));
    expect(fetched).toEqual([pathToFileURL(join(folder, "report.html")).href]);
  });

  test("the scheme's colours are used", async () => {
    const palette = scheme === "light" ? lightPalette : darkPalette;
    const colors = await page.evaluate<Record<string, string>>("report.engineColors()");
    expect(colors).toEqual(palette.engines);
    const body = await page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
    expect(parseColor(body)).toEqual(parseColor(palette.page));
  });

  test("every chart is shown once, and is wide enough to be read", async () => {
    const drawings = await page.evaluate<number[]>("report.drawingsPerChart()");
    expect(drawings).toEqual(Array<number>(chartCount).fill(1));
    for (const { name, box, texts } of await chartsOf(page)) {
      expect(box.width, name).toBeGreaterThan(width === 390 ? 300 : 400);
      expect(texts.length, name).toBeGreaterThanOrEqual(4);
      for (const { text, sizePx } of texts) {
        expect(sizePx, `${name}: ${text}`).toBeGreaterThanOrEqual(11);
      }
    }
  });

  test("texts and axes of charts have contrast", async () => {
    let axes = 0;
    for (const chart of await chartsOf(page)) {
      const ground = parseColor(chart.ground);
      for (const { text, color } of chart.texts) {
        const ratio = contrast(parseColor(color), ground);
        expect(ratio, `${chart.name}: ${text}`).toBeGreaterThanOrEqual(4.5);
      }
      for (const color of chart.axes) {
        expect(contrast(parseColor(color), ground), chart.name).toBeGreaterThanOrEqual(3);
      }
      axes += chart.axes.length;
    }
    expect(axes).toBeGreaterThan(chartCount - 1);
  });

  test("texts of charts are neither cut off nor on top of each other", async () => {
    expectApart(await chartsOf(page));
  });

  test("each chart's picture has the colours of its engines", async () => {
    const colors = await page.evaluate<Record<string, string>>("report.engineColors()");
    for (const { name, box, engines, ground } of await chartsOf(page)) {
      expect(engines.length, name).toBeGreaterThanOrEqual(2);
      const picture = crop(
        pictures.at(box.top),
        box.left,
        box.top % pictures.step,
        box.width,
        box.height,
      );
      const pixels = picture.width * picture.height;
      const drawn = pixels - countPixels(picture, parseColor(ground), 8);
      expect(drawn / pixels, `${name} is blank`).toBeGreaterThan(0.02);
      for (const engine of engines) {
        const count = countPixels(picture, parseColor(colors[engine]), 16);
        expect(count, `${name}: ${engine}`).toBeGreaterThanOrEqual(20);
      }
    }
  });

  test("all other texts have contrast, also those behind the charts", async () => {
    await page.evaluate("report.openDetails()");
    const texts = await page.evaluate<ShownText[]>("report.shownTexts()");
    expect(texts.length).toBeGreaterThan(500);
    for (const { text, color, ground } of texts) {
      expect(contrast(parseColor(color), parseColor(ground)), text).toBeGreaterThanOrEqual(4.5);
    }
  });

  test("nothing is wider than the window, also with all tables open", async () => {
    for (const other of width === 390 ? [390, 360] : [1280, 1920, 1024, 768]) {
      await page.setViewportSize({ width: other, height: 900 });
      expect(await page.evaluate("report.overflowing()"), `${other} px`).toEqual([]);
    }
    await page.setViewportSize({ width, height: 900 });
  });
});

test.each([1280, 390])("charts of a close race are readable too, %i px wide", async (width) => {
  const place = join(folder, "close");
  await writeReport(closeRace(), place);
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  try {
    await page.goto(pathToFileURL(join(place, "report.html")).href);
    await page.addScriptTag({ path: join(import.meta.dirname, "in-page.js") });
    await picturesOf(page, `close-${width}`);
    expectApart(await chartsOf(page));
    expect(await page.evaluate("report.overflowing()")).toEqual([]);
  } finally {
    await page.close();
  }
});

describe.each([
  ["light", lightPalette, "#ffffff"],
  ["dark", darkPalette, "#0d1117"],
] as const)("the %s chart of README", (scheme, palette, ground) => {
  test("is seen as an image on GitHub's ground", async () => {
    const page = await browser.newPage({ viewport: { width: 840, height: 520 } });
    const address = pathToFileURL(join(folder, `chart-${scheme}.svg`)).href;
    try {
      // An image of a file is only shown on a page that is a file.
      await page.goto(pathToFileURL(join(folder, "report.md")).href);
      await page.evaluate(
        `document.body.innerHTML = '<img src="${address}">'; document.body.style.background = "${ground}";`,
      );
      await page.waitForFunction("document.images[0].naturalWidth === 800");
      const path = join(screenshots, `chart-${scheme}.png`);
      const picture = decodePng(await page.locator("img").screenshot({ path }));
      expect(countPixels(picture, parseColor(palette.engines.situ), 8)).toBeGreaterThan(5_000);
      for (const engine of ["sqlite", "redis", "postgres"] as const) {
        const color = parseColor(palette.engines[engine]);
        expect(countPixels(picture, color, 8), engine).toBeGreaterThan(50);
      }
      expect(contrast(parseColor(palette.muted), parseColor(ground))).toBeGreaterThanOrEqual(4.5);
      expect(countPixels(picture, parseColor(palette.text), 8)).toBeGreaterThan(200);
    } finally {
      await page.close();
    }
  });
});

interface Pictures {
  readonly step: number;
  at(top: number): Picture;
}

/**
 * The page in pieces that overlap by as much as the highest chart: a browser draws no more than
 * 16,384 pixels at once.
 */
async function picturesOf(page: Page, name: string): Promise<Pictures> {
  const [step, overlapping] = [6_000, 1_000];
  const width = page.viewportSize()!.width;
  const total = await page.evaluate<number>("document.documentElement.scrollHeight");
  const pictures: Picture[] = [];
  for (let y = 0; y < total; y += step) {
    const clip = { x: 0, y, width, height: Math.min(step + overlapping, total - y) };
    const path = join(screenshots, `${name}-${pictures.length + 1}.png`);
    pictures.push(decodePng(await page.screenshot({ fullPage: true, clip, path })));
  }
  return { step, at: (top) => pictures[Math.floor(top / step)] };
}

function expectApart(charts: readonly ShownChart[]): void {
  for (const { name, box, texts } of charts) {
    for (const { text, box: own } of texts) {
      const isInside =
        own.left >= box.left - 1 &&
        own.right <= box.right + 1 &&
        own.top >= box.top - 2 &&
        own.bottom <= box.bottom + 2;
      expect(isInside, `${name}: "${text}" is cut off`).toBe(true);
    }
    for (const [index, one] of texts.entries()) {
      for (const other of texts.slice(index + 1)) {
        const message = `${name}: "${one.text}" and "${other.text}" overlap`;
        expect(overlap(one.box, other.box), message).toBe(false);
      }
    }
  }
}

async function chartsOf(page: Page): Promise<ShownChart[]> {
  const charts = await page.evaluate<ShownChart[]>("report.shownCharts()");
  expect(charts).toHaveLength(chartCount);
  return charts;
}

/** Boxes of lines are higher than their letters: only more than that counts. */
function overlap(one: Box, other: Box): boolean {
  const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
  return across > 1 && down > 4;
}
