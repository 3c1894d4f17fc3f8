/** The server's life: one queue, restarts, crashes. */

import { expect, test } from "vitest";

import type { Connection } from "../src/agentConnection";
import { Server, type ServerState } from "../src/server";

interface Started {
  readonly server: Server;
  readonly states: ServerState["kind"][];
  readonly log: string[];
  /** End the server that runs, as a crash does. */
  readonly crash: () => void;
}

function serve(options: { readonly fails?: boolean } = {}): Started {
  const log: string[] = [];
  const closers: (() => void)[] = [];
  const output = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const connect = async (
    _launch: unknown,
    _handlers: unknown,
    _log: unknown,
    closed: () => void,
  ): Promise<Connection> => {
    const number = closers.push(closed);
    log.push(`start ${number}`);
    await Promise.resolve();
    if (options.fails === true) {
      throw new Error("no such program");
    }
    return {
      request: () => Promise.reject(new Error("not asked")),
      settingsChanged: () => Promise.resolve(),
      stop: () => {
        log.push(`stop ${number}`);
        return Promise.resolve();
      },
    };
  };
  const launch = { command: "x", args: [], cwd: "/", env: {} };
  const server = new Server(() => Promise.resolve(launch), {} as never, output as never, connect);
  const states: ServerState["kind"][] = [];
  server.onDidChangeState(({ kind }) => states.push(kind));
  return { server, states, log, crash: () => closers.at(-1)?.() };
}

test("who wants the server at the same time gets the same one", async () => {
  const { server, log, states } = serve();
  const [one, other] = await Promise.all([server.start(), server.start()]);
  expect(one).toBe(other);
  expect(log).toEqual(["start 1"]);
  expect(states).toEqual(["starting", "running"]);
});

test("restarts go through one queue: never two servers at once", async () => {
  const { server, log } = serve();
  await Promise.all([server.start(), server.restart(), server.restart(), server.stop()]);
  expect(log).toEqual(["start 1", "stop 1", "start 2", "stop 2", "start 3", "stop 3"]);
  expect(server.state.kind).toBe("stopped");
});

test("a start that fails says why, and the next one tries again", async () => {
  const { server, log } = serve({ fails: true });
  await expect(server.start()).rejects.toThrow("no such program");
  expect(server.state).toEqual({ kind: "failed", message: "no such program" });
  await expect(server.start()).rejects.toThrow("no such program");
  expect(log).toEqual(["start 1", "start 2"]);
});

test("a server that crashes is started again, but not for ever", async () => {
  const { server, crash, log } = serve();
  await server.start();
  for (const starts of [2, 3, 3]) {
    crash();
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(log).toHaveLength(starts);
  }
  expect(server.state.kind).toBe("failed");
  await server.restart();
  expect(server.state.kind).toBe("running");
});

test("a window that closes starts no server", async () => {
  const { server } = serve();
  server.dispose();
  await expect(server.start()).rejects.toThrow("closing");
});
