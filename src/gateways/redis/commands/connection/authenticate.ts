/** AUTH and HELLO: who is asking, and in which protocol. The one user is "default". */

import { isSecret } from "../../../../runtime/secret.ts";
import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { REDIS_VERSION } from "../../info.ts";
import { parseInt64 } from "../../numbers.ts";
import { ReplyError, SYNTAX } from "../../reply-error.ts";
import { setName } from "./client-name.ts";

const USER = "default";

const NO_PASSWORD_SET =
  "ERR AUTH <password> called without any password configured for the default user. " +
  "Are you sure your configuration is correct?";
const WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled.";
const NOT_AUTHENTICATED =
  "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH " +
  "<user> <pass> option can be used to authenticate the client and select the RESP protocol " +
  "version at the same time";

function auth(call: Call): void {
  const { count, server } = call;
  if (count > 3) throw new ReplyError(SYNTAX);
  if (count === 2 && server.settings.password === "") throw new ReplyError(NO_PASSWORD_SET);
  authenticate(call, count === 2 ? USER : call.text(1), call.arg(count - 1));
  call.reply.ok();
}

function authenticate({ server, session }: Call, user: string, given: Uint8Array): void {
  const { password } = server.settings;
  // Compared in any case, so that the time does not tell which of the two was wrong.
  const isRight = isSecret(given, password) || password === "";
  if (user !== USER || !isRight) throw new ReplyError(WRONG_PASSWORD);
  session.isAuthenticated = true;
}

function hello(call: Call): void {
  const { count, session, reply } = call;
  const protocol = count > 1 ? protocolAt(call, 1) : session.protocol;
  for (let i = 2; i < count; i++) {
    const more = count - 1 - i;
    if (call.is(i, "AUTH") && more >= 2) {
      authenticate(call, call.text(i + 1), call.arg(i + 2));
      i += 2;
    } else if (call.is(i, "SETNAME") && more >= 1) {
      setName(call, ++i);
    } else {
      throw new ReplyError(`ERR Syntax error in HELLO option '${call.text(i)}'`);
    }
  }
  if (!session.isAuthenticated) throw new ReplyError(NOT_AUTHENTICATED);
  session.protocol = protocol;
  reply.protocol = protocol;
  reply.map(7);
  reply.text("server");
  reply.text("redis");
  reply.text("version");
  reply.text(REDIS_VERSION);
  reply.text("proto");
  reply.integer(protocol);
  reply.text("id");
  reply.integer(session.id);
  reply.text("mode");
  reply.text("standalone");
  reply.text("role");
  reply.text("master");
  reply.text("modules");
  reply.array(0);
}

function protocolAt(call: Call, index: number): 2 | 3 {
  const version = parseInt64(call.arg(index));
  if (version === undefined) {
    throw new ReplyError("ERR Protocol version is not an integer or out of range");
  }
  if (version !== 2 && version !== 3) throw new ReplyError("NOPROTO unsupported protocol version");
  return version;
}

export const AUTHENTICATION_COMMANDS: readonly Command[] = [
  {
    name: "auth",
    arity: -2,
    flags: ["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    group: "connection",
    since: "1.0.0",
    summary: "Authenticate to the server",
    complexity: "O(N) where N is the number of passwords defined for the user",
    runs: "session",
    run: auth,
  },
  {
    name: "hello",
    arity: -1,
    flags: ["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    group: "connection",
    since: "6.0.0",
    summary: "Handshake with Redis",
    complexity: "O(1)",
    runs: "session",
    run: hello,
  },
];
