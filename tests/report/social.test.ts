// The example of a social network in a real browser: posts of other processes appear, permissions hold, and the cost
// of a request is shown.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { memoryRoot } from "../../benchmarks/harness/guard/guard.ts";
import { launchBrowser } from "./browser.ts";

const MAIN = fileURLToPath(new URL("../../dist/examples/social/main.js", import.meta.url));

let folder: string;
let child: ChildProcess;
let errors = "";
let browser: Browser;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(memoryRoot(), "situ-examples-test-"));
  const env = { ...process.env, TMPDIR: folder, SITU_MEMORY_DIR: folder };
  child = spawn(process.execPath, [MAIN], { env });
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const [line] = (await once(child.stdout!.setEncoding("utf8"), "data")) as [string];
  browser = await launchBrowser();
  page = await browser.newPage();
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(line.trim());
});

afterAll(async () => {
  await browser?.close();
  if (child?.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const authors = (): Promise<string[]> =>
  page.locator("#posts li").evaluateAll((items) => items.map((item) => item.dataset.author ?? ""));
const post = async (text: string, friendsOnly: boolean): Promise<void> => {
  await page.fill("input[name=text]", text);
  await page.setChecked("input[name=friendsOnly]", friendsOnly);
  await page.click("#write button");
  await page.getByText(text).waitFor();
};
const readAs = async (name: string): Promise<void> => {
  await page.selectOption("#reader", { label: name });
  await page.waitForSelector(`#posts[data-reader="${name}"]`);
};

test("posts of several processes arrive, and what reading them cost", async () => {
  // Ada follows Grace and Edsger, who have a process each.
  await page.waitForFunction(
    `new Set([...document.querySelectorAll("#posts li")].map((item) => item.dataset.author)).size === 2`,
  );
  expect(new Set(await authors())).toEqual(new Set(["Grace", "Edsger"]));
  const pids = await page.locator("#posts .text").allTextContents();
  const processes = new Set(pids.map((text) => /process (\d+)/.exec(text)?.[1]));
  expect(processes.size).toBe(2);
  expect(await page.textContent("#cost")).toMatch(
    /^\d+ calls of the graph in \d+ µs; \d+ posts hidden$/,
  );
});

test("a post for friends is seen by those whom its author follows", async () => {
  // Leslie follows Frances and Ada. Frances follows Ada and Grace, and not Leslie.
  await readAs("Frances");
  await post("for friends of Frances", true);
  await post("for everyone <b>bold</b>", false);
  await readAs("Leslie");
  await page.getByText("for everyone <b>bold</b>").waitFor();
  expect(await page.getByText("for friends of Frances").count()).toBe(0);
  expect(await page.textContent("#cost")).toMatch(/[1-9]\d* posts hidden$/);
});

test("a stranger's request is refused, not obeyed", async () => {
  const status = (path: string, body?: string) =>
    page.evaluate(
      async ([address, data]) =>
        (await fetch(address, data === "" ? {} : { method: "POST", body: data })).status,
      [path, body ?? ""] as const,
    );
  expect(await status("/feed?reader=nobody")).toBe(400);
  expect(await status("/posts", "{")).toBe(400);
  expect(
    await status("/posts", JSON.stringify({ author: 99, text: "x", friendsOnly: false })),
  ).toBe(400);
  expect(await status("/else")).toBe(404);
  // The browser says so of each.
  complaints.splice(0, 4);
  expect(complaints).toEqual([]);
});

test("it ends with all its processes, and leaves nothing", async () => {
  await browser.close();
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  expect(await exit).toEqual([0, null]);
  expect(errors).toBe("");
  expect(readdirSync(folder)).toEqual([]);
});
