// ECharts, on the server: an option in, the text of an SVG out. No browser takes part.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { LabelLayout } from "echarts/features";
import { SVGRenderer } from "echarts/renderers";
import type { Palette } from "./palette.ts";

use([BarChart, CustomChart, LineChart, ScatterChart, GridComponent, LabelLayout, SVGRenderer]);

export const fontFamily =
  "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly palette: Palette;
}

/** What a chart hands to ECharts. */
export type Option = Parameters<ReturnType<typeof init>["setOption"]>[0];

/** A name for people who hear the chart, as both a title and a label. */
export function draw(option: Option, { width, height, palette }: Frame, name: string): string {
  const chart = init(null, null, { renderer: "svg", ssr: true, width, height });
  try {
    chart.setOption({
      animation: false,
      backgroundColor: "transparent",
      textStyle: { fontFamily, fontSize: 13, color: palette.text },
      ...option,
    });
    return named(plain(chart.renderToSVGString()), name);
  } finally {
    // Its timers would keep the process alive.
    chart.dispose();
  }
}

/** Without what only a live chart needs: hover styles, and attributes that are no SVG. */
function plain(svg: string): string {
  return svg
    .replace(/<style\s*>[\s\S]*?<\/style>/g, "")
    .replace(/ (?:ecmeta_[a-z_]+|class|pointer-events|xml:space)="[^"]*"/g, "")
    .replace(/\n+/g, "\n")
    .trim();
}

function named(svg: string, name: string): string {
  const text = escapeXml(name);
  return svg.replace(
    /^<svg([^>]*)>/,
    (_, attributes: string) =>
      `<svg${attributes} role="img" aria-label="${text}"><title>${text}</title>`,
  );
}

function escapeXml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
