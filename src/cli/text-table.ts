/**
 * Rows as a table on a terminal: columns as wide as what is in them, the widest made narrower until
 * all fit, and if that would leave nothing to read, each row as a list of its fields.
 */

export interface Column {
  readonly head: string;
  /** Numbers stand to the right. */
  readonly isRight?: boolean;
}

const GAP = "  ";
/** A column is not made narrower than this. */
const LEAST_COLUMNS = 6;

/** Cells of a terminal that a character takes: none for what combines, two for wide ones. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += cellsOf(character.codePointAt(0)!);
  return width;
}

/** By the blocks of Unicode's East Asian Width (UAX 11) and its emoji, coarsely. */
function cellsOf(code: number): number {
  if (code < 0x300) return 1;
  if (code <= 0x36f || (code >= 0x200b && code <= 0x200f) || (code >= 0xfe00 && code <= 0xfe0f)) {
    return 0;
  }
  const isWide =
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd);
  return isWide ? 2 : 1;
}

export function truncated(text: string, width: number): string {
  // A character takes at most two cells: most texts need no closer look.
  if (text.length * 2 <= width || widthOf(text) <= width) return text;
  let kept = "";
  let left = width - 1;
  for (const character of text) {
    left -= cellsOf(character.codePointAt(0)!);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

function padded(text: string, width: number, isRight: boolean): string {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return isRight ? space + text : text + space;
}

/** The widths of columns; undefined if they do not fit in any way that can be read. */
export function columnWidths(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  room: number,
): number[] | undefined {
  const widths = columns.map(({ head }, i) =>
    rows.reduce((most, row) => Math.max(most, widthOf(row[i])), widthOf(head)),
  );
  const gaps = GAP.length * (columns.length - 1);
  for (;;) {
    const tooMuch = widths.reduce((sum, width) => sum + width, gaps) - room;
    if (tooMuch <= 0) return widths;
    const widest = Math.max(...widths);
    if (widest <= LEAST_COLUMNS) return undefined;
    // To the width of the next one, so that the wide share what is taken away.
    const next = Math.max(LEAST_COLUMNS, ...widths.filter((width) => width < widest));
    const sharing = widths.filter((width) => width === widest).length;
    const step = Math.max(1, Math.min(widest - next, Math.ceil(tooMuch / sharing)));
    for (let i = 0; i < widths.length; i++) if (widths[i] === widest) widths[i] -= step;
  }
}

type Paint = (text: string) => string;
const PLAIN: Paint = (text) => text;

/** One line of cells. */
export function tableLine(
  columns: readonly Column[],
  widths: readonly number[],
  row: readonly string[],
): string {
  const cells = row.map((cell, i) =>
    padded(truncated(cell, widths[i]), widths[i], columns[i].isRight === true),
  );
  return cells.join(GAP).trimEnd();
}

/** Head and rows, or records if the room is too narrow; as lines. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  room: number,
  dim: Paint = PLAIN,
): string[] {
  const widths = columnWidths(columns, rows, room);
  if (widths === undefined) {
    return rows.flatMap((row, i) => [
      dim(`── ${i + 1} ──`),
      ...renderRecord(
        columns.map(({ head }, at) => [head, row[at]]),
        room,
        dim,
      ),
    ]);
  }
  return [
    ...tableHead(columns, widths, dim),
    ...rows.map((row) => tableLine(columns, widths, row)),
  ];
}

export function tableHead(
  columns: readonly Column[],
  widths: readonly number[],
  dim: Paint = PLAIN,
): string[] {
  const heads = columns.map(({ head }) => head);
  const rules = widths.map((width) => "─".repeat(width));
  return [dim(tableLine(columns, widths, heads)), dim(rules.join(GAP))];
}

/** Names and values below each other. */
export function renderRecord(
  fields: readonly (readonly [name: string, value: string])[],
  room: number,
  dim: Paint = PLAIN,
): string[] {
  const width = Math.max(...fields.map(([name]) => widthOf(name)));
  return fields.map(([name, value]) => {
    const left = Math.max(LEAST_COLUMNS, room - width - GAP.length);
    return `${dim(padded(name, width, false))}${GAP}${truncated(value, left)}`.trimEnd();
  });
}
