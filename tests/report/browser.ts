// A real browser for tests: Debian's Chromium, which `npm test` installs. It must be there.
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const executablePath = "/usr/bin/chromium";

export async function launchBrowser(): Promise<Browser> {
  if (!existsSync(executablePath)) {
    throw new Error(
      `${executablePath} is missing: apt-get install -y --no-install-recommends chromium`,
    );
  }
  return await chromium.launch({
    executablePath,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

export interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly width: number;
  readonly height: number;
}

/** What in-page.js tells about a chart. */
export interface ShownChart {
  readonly name: string;
  readonly box: Box;
  readonly ground: string;
  readonly engines: readonly string[];
  readonly texts: readonly {
    readonly text: string;
    readonly color: string;
    readonly sizePx: number;
    readonly box: Box;
  }[];
  readonly axes: readonly string[];
}

export interface ShownText {
  readonly text: string;
  readonly color: string;
  readonly ground: string;
}
