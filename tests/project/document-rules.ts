/** What documents and code point at must be there: files, headings, and paths of the source. */

import { dirname, join, normalize } from "node:path/posix";

/** The project as a document sees it: undefined where there is nothing. */
export interface Project {
  exists(path: string): boolean;
  /** The text of another document. */
  text(path: string): string;
}

function withoutCode(markdown: string): string {
  return markdown.replace(/^(```|~~~)[\s\S]*?^\1/gm, "").replace(/`[^`\n]*`/g, "");
}

/** As GitHub makes them: lower case, no punctuation, hyphens for spaces. */
export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  const fenceless = markdown.replace(/^(```|~~~)[\s\S]*?^\1/gm, "");
  for (const [, heading] of fenceless.matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const base = plain.replace(/[^\p{L}\p{N}\p{M} _-]/gu, "").replace(/ /g, "-");
    let anchor = base;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${base}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

function linksOf(markdown: string): string[] {
  const prose = withoutCode(markdown);
  const inline = [...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)];
  const references = [...prose.matchAll(/^\s*\[[^\]]+\]:\s+<?(\S+?)>?(?:\s|$)/gm)];
  return [...inline, ...references].map(([, target]) => target);
}

export function brokenLinks(path: string, markdown: string, project: Project): string[] {
  return linksOf(markdown).flatMap((link) => {
    if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return [];
    const [file, anchor] = link.split("#");
    const target = file === "" ? path : normalize(join(dirname(path), decodeURI(file)));
    if (target.startsWith("..")) return [`${path}: ${link} leads out of the project`];
    if (target !== path && !project.exists(target)) return [`${path}: ${link} leads nowhere`];
    if (anchor === undefined || !target.endsWith(".md")) return [];
    if (anchorsOf(target === path ? markdown : project.text(target)).has(anchor)) return [];
    return [`${path}: ${target} has no heading #${anchor}`];
  });
}

const FOLDERS = "src|tests|simulation|workloads|benchmarks|examples|scripts";
/** Made by a run, and in no clone. */
const GENERATED = ["benchmarks/results"];

/** Paths of the source that a document mentions, in prose, in `code` or in a drawing. */
export function missingSources(path: string, markdown: string, project: Project): string[] {
  const mentioned = markdown.matchAll(
    new RegExp(`(?<![\\w/.-])(?:${FOLDERS})/[\\w./-]*\\w(?:/(?![\\w*<{]))?(?![*<{…])`, "g"),
  );
  return [...new Set([...mentioned].map(([found]) => found.replace(/\/$/, "")))]
    .filter((found) => !GENERATED.includes(found) && !project.exists(found))
    .map((found) => `${path}: there is no ${found}`);
}

/**
 * Documents that a file of code cites: docs/ISOLATION.md, docs/DESIGN.md §5, which is a heading with that
 * number, and docs/FAULTS.md, "Disk", which is a heading with that name.
 */
export function brokenCitations(path: string, text: string, project: Project): string[] {
  const prose = text.replace(/\n\s*(?:\*|\/\/) ?/g, " ");
  const cited = prose.matchAll(
    /(?<![\w/.-])(docs\/[A-Z][A-Z_]*\.md|docs\/decisions\/\d{4})(?: §(\d+)|, "([A-Z][\w ]*)"[,:])?/g,
  );
  return [...cited].flatMap(([citation, document, section, title]) => {
    const complain = [`${path}: there is no ${citation}`];
    if (!document.endsWith(".md")) return project.exists(document) ? [] : complain;
    if (!project.exists(document)) return complain;
    const headings = project.text(document).match(/^#+ .*$/gm) ?? [];
    const isThere = (heading: string): boolean =>
      (section === undefined || heading.startsWith(`## ${section}. `)) &&
      (title === undefined || heading === `## ${title}`);
    return headings.some(isThere) ? [] : complain;
  });
}

/** As a reader counts them, code included. */
export function wordsOf(markdown: string): number {
  return markdown.split(/\s+/).filter((word) => word !== "").length;
}
