/** Each test file is in the tier that loads modules as it needs them. */

import { expect, test } from "vitest";
import { TIERS } from "../tiers.ts";
import { filesIn, project } from "./files.ts";

test("files that replace modules are in the tier `mocked`, and no others", () => {
  const replacing = /\bvi\.(?:mock|doMock)\(/;
  const found = filesIn("tests", ".test.ts").filter((path) => replacing.test(project.text(path)));
  expect(found.filter((path) => path !== "tests/project/tiers.test.ts")).toEqual(
    [...TIERS.mocked].sort(),
  );
});
