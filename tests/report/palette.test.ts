import { describe, expect, test } from "vitest";
import { engineNames } from "../../benchmarks/engines/engine.ts";
import {
  darkPalette,
  engineSymbols,
  lightPalette,
  paletteDeclarations,
  variablePalette,
} from "../../benchmarks/report/charts/palette.ts";
import { contrast, distance, parseColor, visions } from "./colors.ts";

describe.each([
  ["light", lightPalette],
  ["dark", darkPalette],
])("the %s palette", (_, palette) => {
  test("has texts of 4.5 : 1 and drawings of 3 : 1 against both grounds", () => {
    for (const ground of [palette.page, palette.ground].map(parseColor)) {
      for (const text of [palette.text, palette.muted, palette.good, palette.bad]) {
        expect(contrast(parseColor(text), ground), text).toBeGreaterThanOrEqual(4.5);
      }
      expect(contrast(parseColor(palette.axis), ground)).toBeGreaterThanOrEqual(3);
    }
    for (const engine of engineNames) {
      const color = parseColor(palette.engines[engine]);
      expect(contrast(color, parseColor(palette.ground)), engine).toBeGreaterThanOrEqual(3);
    }
  });

  test.each(Object.entries(visions))("keeps engines apart with %s vision", (_, vision) => {
    for (const one of engineNames) {
      for (const other of engineNames) {
        if (one === other) continue;
        const [left, right] = [one, other].map((engine) => parseColor(palette.engines[engine]));
        expect(distance(left, right, vision), `${one} and ${other}`).toBeGreaterThan(8);
      }
    }
  });

  test("declares every variable that charts refer to", () => {
    const declared = paletteDeclarations(palette);
    const { engines, ...others } = variablePalette;
    for (const variable of [...Object.values(engines), ...Object.values(others)]) {
      const name = /^var\((--[a-z-]+)\)$/.exec(variable)?.[1];
      expect(declared).toContain(`${name}: #`);
    }
  });
});

test("marks on lines differ, apart from the cluster's, which is a hollow one of Situ's", () => {
  const { cluster, ...others } = engineSymbols;
  expect(new Set(Object.values(others)).size).toBe(engineNames.length - 1);
  expect(cluster).toBe(engineSymbols.situ);
});
