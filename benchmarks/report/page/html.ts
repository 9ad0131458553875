// HTML from templates in which every text is escaped, unless it is HTML already.

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | readonly Part[];

export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(
    strings.map((text, index) => (index === 0 ? "" : render(parts[index - 1])) + text).join(""),
  );
}

/** For what was made as markup by somebody else: the drawings of charts, our own style sheet. */
export function trusted(text: string): Html {
  return new Html(text);
}

export const nothing = new Html("");

function render(part: Part): string {
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map(render).join("");
  return escapeHtml(String(part));
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
