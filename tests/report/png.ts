// Reads the PNG files that a browser's screenshot has: eight bits, RGB or RGBA, not interlaced
// (PNG specification, third edition, §9 filters, §11 chunks).
import { inflateSync } from "node:zlib";
import type { Rgb } from "./colors.ts";

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Three bytes for each pixel. */
  readonly rgb: Uint8Array;
}

export function decodePng(file: Buffer): Picture {
  if (file.toString("latin1", 1, 4) !== "PNG") throw new TypeError("this is no PNG");
  const data: Buffer[] = [];
  let [width, height, channels] = [0, 0, 0];
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const kind = file.toString("latin1", at + 4, at + 8);
    const body = file.subarray(at + 8, at + 8 + length);
    if (kind === "IHDR") {
      width = body.readUInt32BE(0);
      height = body.readUInt32BE(4);
      const [depth, color, , , interlace] = body.subarray(8);
      channels = color === 2 ? 3 : color === 6 ? 4 : 0;
      if (depth !== 8 || channels === 0 || interlace !== 0) {
        throw new TypeError(`PNG of depth ${depth}, colour ${color}, interlace ${interlace}`);
      }
    }
    if (kind === "IDAT") data.push(body);
    at += length + 12;
  }
  return {
    width,
    height,
    rgb: unfilter(inflateSync(Buffer.concat(data)), width, height, channels),
  };
}

/** A page has thirty million bytes: no objects here. */
function unfilter(data: Buffer, width: number, height: number, channels: number): Uint8Array {
  const stride = width * channels;
  const rgb = new Uint8Array(width * height * 3);
  let above = new Uint8Array(stride);
  let row = new Uint8Array(stride);
  let to = 0;
  for (let y = 0; y < height; y++) {
    const start = y * (stride + 1);
    const filter = data[start];
    if (filter > 4) throw new TypeError(`PNG has no filter ${filter}`);
    for (let x = 0; x < stride; x++) {
      const left = x < channels ? 0 : row[x - channels];
      const upLeft = x < channels ? 0 : above[x - channels];
      const byte = data[start + 1 + x];
      row[x] = filter === 0 ? byte : byte + predicted(filter, left, above[x], upLeft);
    }
    for (let x = 0; x < stride; x += channels) {
      rgb[to++] = row[x];
      rgb[to++] = row[x + 1];
      rgb[to++] = row[x + 2];
    }
    [above, row] = [row, above];
  }
  return rgb;
}

function predicted(filter: number, left: number, up: number, upLeft: number): number {
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  const toLeft = Math.abs(up - upLeft);
  const toUp = Math.abs(left - upLeft);
  const toUpLeft = Math.abs(left + up - 2 * upLeft);
  if (toLeft <= toUp && toLeft <= toUpLeft) return left;
  return toUp <= toUpLeft ? up : upLeft;
}

/** The part of a picture from a corner on, as far as the picture goes. */
export function crop(
  picture: Picture,
  left: number,
  top: number,
  width: number,
  height: number,
): Picture {
  const right = Math.min(picture.width, Math.round(left + width));
  const bottom = Math.min(picture.height, Math.round(top + height));
  const [x, y] = [Math.round(left), Math.round(top)];
  const rgb = new Uint8Array((right - x) * (bottom - y) * 3);
  for (let row = y; row < bottom; row++) {
    const start = (row * picture.width + x) * 3;
    rgb.set(picture.rgb.subarray(start, start + (right - x) * 3), (row - y) * (right - x) * 3);
  }
  return { width: right - x, height: bottom - y, rgb };
}

/** Pixels that are within `tolerance` of a colour in each channel. */
export function countPixels({ rgb }: Picture, [red, green, blue]: Rgb, tolerance: number): number {
  let count = 0;
  for (let at = 0; at < rgb.length; at += 3) {
    const isNear =
      Math.abs(rgb[at] - red) <= tolerance &&
      Math.abs(rgb[at + 1] - green) <= tolerance &&
      Math.abs(rgb[at + 2] - blue) <= tolerance;
    if (isNear) count++;
  }
  return count;
}
