/** Commands on strings answer as redis-server does, byte by byte. */

import { describe, expect, test } from "vitest";
import { parseInt64 } from "../../../src/gateways/redis/numbers.ts";
import { temporaryStores } from "../../helpers/store.ts";
import { SideBySide } from "./against-redis.ts";
import { RawClient } from "./raw-client.ts";
import { floatStep, stringStep } from "./strings-commands.ts";

const stores = temporaryStores();

describe("random commands on strings", () => {
  test.each([2, 3] as const)("in RESP%i", async (protocol) => {
    const both = await SideBySide.start(stores);
    await both.compare(stringStep, 5_000, protocol);
  });

  test("INCRBYFLOAT computes as Redis's long doubles do", async () => {
    const both = await SideBySide.start(stores);
    await both.compare(floatStep, 3_000, 2);
  });

  test("LCS refuses a table that takes too much memory", async () => {
    const both = await SideBySide.start(stores);
    const client = await RawClient.connect(both.gateway.port);
    stores.later(() => client.close());
    await client.sendAll([
      ["set", "a", "x".repeat(5_000)],
      ["set", "b", "x".repeat(5_000)],
    ]);
    expect(await client.ask("lcs", "a", "b")).toBe(
      "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len\r\n",
    );
  });

  test("a string has at most one mebibyte", async () => {
    const both = await SideBySide.start(stores);
    const client = await RawClient.connect(both.gateway.port);
    stores.later(() => client.close());
    const tooLong = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    const mebibyte = 2 ** 20;
    expect(await client.ask("setrange", "a", mebibyte - 1, "x")).toBe(`:${mebibyte}\r\n`);
    expect(await client.ask("setrange", "a", mebibyte, "x")).toBe(tooLong);
    expect(await client.ask("append", "a", "x")).toBe(tooLong);
    expect(await client.ask("setrange", "b", "9223372036854775807", "x")).toBe(tooLong);
    expect(await client.ask("strlen", "a")).toBe(`:${mebibyte}\r\n`);
  });

  describe("numbers", () => {
    const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

    test("integers are read strictly", () => {
      expect(parseInt64(bytes("9007199254740993"))).toBe(9007199254740993n);
      expect(parseInt64(bytes("-9223372036854775808"))).toBe(-(2n ** 63n));
      expect(parseInt64(bytes("999999999999999"))).toBe(999_999_999_999_999);
      expect(parseInt64(bytes("1000000000000000"))).toBe(10 ** 15);
      for (const wrong of ["", "-", "+1", "01", "-0", "1.0", " 1", "9223372036854775808", "1e3"]) {
        expect(parseInt64(bytes(wrong)), wrong).toBe(undefined);
      }
    });
  });
});
