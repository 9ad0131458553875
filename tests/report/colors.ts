// Contrast as WCAG 2.2 defines it, and how far apart colours are for people who see fewer of them.

export type Rgb = readonly [number, number, number];

/** Of "#rrggbb", "rgb(r, g, b)" and "rgba(…, 1)"; throws for what is see-through. */
export function parseColor(text: string): Rgb {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text);
  if (hex !== null) return hex.slice(1).map((part) => Number.parseInt(part, 16)) as unknown as Rgb;
  const rgb = /^rgba?\((\d+), (\d+), (\d+)(?:, 1)?\)$/.exec(text);
  if (rgb !== null) return rgb.slice(1).map(Number) as unknown as Rgb;
  throw new TypeError(`"${text}" is no opaque colour`);
}

export function contrast(one: Rgb, other: Rgb): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((left, right) => left - right);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color: Rgb): number {
  const [red, green, blue] = linear(color);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function linear(color: Rgb): Rgb {
  return color.map((part) =>
    part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
  ) as unknown as Rgb;
}

type Matrix = readonly [Rgb, Rgb, Rgb];

/** Machado, Oliveira, Fernandes, "A Physiologically-based Model…", 2009, table 1, severity 1.0. */
export const visions: Readonly<Record<string, Matrix>> = {
  full: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

/** In OKLab (Ottosson, 2020), times 100: 2 can just be told apart side by side. */
export function distance(one: Rgb, other: Rgb, vision: Matrix): number {
  const [left, right] = [okLab(seen(one, vision)), okLab(seen(other, vision))];
  return 100 * Math.hypot(...left.map((part, index) => part - right[index]));
}

function seen(color: Rgb, vision: Matrix): Rgb {
  return vision.map((row) => Math.max(0, dot(row, linear(color)))) as unknown as Rgb;
}

function dot(one: Rgb, other: Rgb): number {
  return one[0] * other[0] + one[1] * other[1] + one[2] * other[2];
}

function okLab(color: Rgb): Rgb {
  const cones: Rgb = [
    Math.cbrt(dot([0.4122214708, 0.5363325363, 0.0514459929], color)),
    Math.cbrt(dot([0.2119034982, 0.6806995451, 0.1073969566], color)),
    Math.cbrt(dot([0.0883024619, 0.2817188376, 0.6299787005], color)),
  ];
  return [
    dot([0.2104542553, 0.793617785, -0.0040720468], cones),
    dot([1.9779984951, -2.428592205, 0.4505937099], cones),
    dot([0.0259040371, 0.7827717662, -0.808675766], cones),
  ];
}
