/**
 * A strict reader of Prometheus's text format 0.0.4, written from its description and not from our
 * writer: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const METRIC = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*/;
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?Inf|NaN)$/;

export function parse(text: string): Map<string, Family> {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  if (text.includes("\r")) throw new Error("a carriage return");
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let current: Family | undefined;
  const helps = new Map<string, string>();
  for (const line of text.slice(0, -1).split("\n")) {
    if (line.startsWith("# HELP ")) {
      const [, name, help] = /^# HELP (\S+) (.*)$/.exec(line) ?? fail(line, "HELP");
      if (helps.has(name) || families.has(name)) fail(line, "a second HELP");
      helps.set(name, unescaped(help, false));
    } else if (line.startsWith("# TYPE ")) {
      const [, name, type] =
        /^# TYPE (\S+) (counter|gauge|histogram|summary|untyped)$/.exec(line) ?? fail(line, "TYPE");
      const help = helps.get(name);
      if (families.has(name)) fail(line, "a second TYPE");
      if (help === undefined) fail(line, "a TYPE without HELP before it");
      current = { name, type, help: help ?? "", samples: [] };
      families.set(name, current);
    } else {
      const sample = parseSample(line);
      if (current === undefined || familyOf(sample.name, current) !== current.name) {
        throw new Error(`a sample outside of its family: ${line}`);
      }
      const series = sample.name + JSON.stringify(Object.entries(sample.labels).sort());
      if (seen.has(series)) fail(line, "a series that comes twice");
      seen.add(series);
      current.samples.push(sample);
    }
  }
  for (const family of families.values()) check(family);
  return families;
}

function fail(line: string, what: string): never {
  throw new Error(`${what}: ${line}`);
}

function familyOf(name: string, { name: family, type }: Family): string {
  if (type !== "histogram") return name;
  return [`${family}_bucket`, `${family}_sum`, `${family}_count`].includes(name) ? family : name;
}

function parseSample(line: string): Sample {
  const name = METRIC.exec(line)?.[0] ?? fail(line, "no name");
  let rest = line.slice(name.length);
  const labels: Record<string, string> = {};
  if (rest.startsWith("{")) {
    rest = rest.slice(1);
    while (!rest.startsWith("}")) {
      const label = LABEL.exec(rest)?.[0] ?? fail(line, "no label");
      const value = /^="((?:[^"\\\n]|\\.)*)"/.exec(rest.slice(label.length));
      if (value === null) throw new Error(`no value of a label: ${line}`);
      if (Object.hasOwn(labels, label)) fail(line, "a label that comes twice");
      labels[label] = unescaped(value[1], true);
      rest = rest.slice(label.length + value[0].length);
      if (rest.startsWith(",")) rest = rest.slice(1);
      else if (!rest.startsWith("}")) fail(line, "no comma");
    }
    rest = rest.slice(1);
  }
  if (!rest.startsWith(" ")) fail(line, "no space before the value");
  return { name, labels, value: parseNumber(rest.slice(1), line) };
}

export function parseNumber(text: string, line = text): number {
  if (!NUMBER.test(text)) fail(line, "no number");
  if (text.endsWith("Inf")) return text.startsWith("-") ? -Infinity : Infinity;
  return Number(text);
}

function unescaped(text: string, isLabel: boolean): string {
  return text.replace(/\\(.)/g, (_, letter: string) => {
    if (letter === "n") return "\n";
    if (letter === "\\" || (isLabel && letter === '"')) return letter;
    throw new Error(`no escape: \\${letter}`);
  });
}

/** The rules for one family: https://prometheus.io/docs/practices/naming/ and of histograms. */
function check(family: Family): void {
  const { name, type, samples } = family;
  if (name.endsWith("_total") !== (type === "counter")) {
    throw new Error(`${name}: counters, and only they, end with _total`);
  }
  for (const { value } of samples) {
    if (type !== "gauge" && !(value >= 0)) throw new Error(`${name} is ${value}`);
    if (Number.isNaN(value)) throw new Error(`${name} is NaN`);
  }
  if (type === "histogram") for (const series of seriesOf(family)) checkHistogram(name, series);
}

/** The samples of a histogram by their labels without `le`. */
function seriesOf({ samples }: Family): Sample[][] {
  const found = new Map<string, Sample[]>();
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels;
    const key = JSON.stringify(labels);
    found.set(key, [...(found.get(key) ?? []), sample]);
  }
  return [...found.values()];
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const ends = buckets.map(({ labels }) => parseNumber(labels.le));
  for (let i = 1; i < buckets.length; i++) {
    if (!(ends[i] > ends[i - 1])) throw new Error(`${name}: buckets out of order`);
    if (buckets[i].value < buckets[i - 1].value) throw new Error(`${name}: not cumulative`);
  }
  if (ends.at(-1) !== Infinity) throw new Error(`${name}: no bucket +Inf`);
  const counts = samples.filter((sample) => sample.name === `${name}_count`);
  const sums = samples.filter((sample) => sample.name === `${name}_sum`);
  if (counts.length !== 1 || sums.length !== 1) throw new Error(`${name}: no sum, or no count`);
  if (counts[0].value !== buckets.at(-1)?.value) throw new Error(`${name}: count is not +Inf`);
}

/** The value of one sample; fails if there is none. */
export function sampleOf(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  for (const { samples } of families.values()) {
    for (const sample of samples) {
      if (sample.name !== name || !sameLabels(sample.labels, labels)) continue;
      return sample.value;
    }
  }
  throw new Error(`no sample ${name} ${JSON.stringify(labels)}`);
}

function sameLabels(a: Readonly<Record<string, string>>, b: typeof a): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
