// A chart on the page, drawn for wide and for narrow places, with its data behind it.
import type { Frame } from "../charts/draw.ts";
import { variablePalette } from "../charts/palette.ts";
import type { TextTable } from "../rows.ts";
import { type Html, html, trusted } from "./html.ts";

export interface Sizes {
  readonly wide: number;
  readonly narrow: number;
}

/** In one of two columns, and on a telephone. */
export const halfSizes: Sizes = { wide: 480, narrow: 320 };
/** Over the whole page. */
export const fullSizes: Sizes = { wide: 980, narrow: 320 };

export function chart(
  sizes: Sizes,
  height: (width: number) => number,
  drawing: (frame: Frame) => string,
): Html {
  const drawn = (width: number): Html =>
    trusted(drawing({ width, height: height(width), palette: variablePalette }));
  return html`<div class="chart"><div class="wide">${drawn(sizes.wide)}</div><div class="narrow">${drawn(sizes.narrow)}</div></div>`;
}

export function dataTable({ head, rows }: TextTable, caption: string): Html {
  return html`<details><summary>Data</summary><div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table>
<caption>${caption}</caption>
<thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([first, ...others]) =>
      html`<tr><th scope="row">${first}</th>${others.map((cell) => html`<td>${cell}</td>`)}</tr>`,
  )}</tbody>
</table></div></details>`;
}

export function list(items: readonly (Html | string)[], className = ""): Html {
  if (items.length === 0) return html``;
  return html`<ul class="${className}">${items.map((item) => html`<li>${item}</li>`)}</ul>`;
}
