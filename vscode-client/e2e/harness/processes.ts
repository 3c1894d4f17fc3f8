// The processes that descend from one of ours, read from /proc: what a test left behind is seen by its id.

import { readFileSync, readdirSync } from "node:fs";

export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

function processes(): Process[] {
  const found: Process[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      // "pid (name) state parent …", where the name may hold anything
      const [state, parent] = readFileSync(`/proc/${name}/stat`, "utf8")
        .split(/^.*\) /s)[1]!
        .split(" ");
      if (state === "Z") continue;
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      found.push({ pid: Number(name), parent: Number(parent), command });
    } catch {
      // it ended while we read
    }
  }
  return found;
}

/** Everything that was started by a process, by what that started, and so on. */
export function descendants(pid: number): Process[] {
  const all = processes();
  const family = new Set([pid]);
  for (let before = 0; before !== family.size;) {
    before = family.size;
    for (const process of all) if (family.has(process.parent)) family.add(process.pid);
  }
  family.delete(pid);
  return all.filter((process) => family.has(process.pid));
}

export function isAlive(pid: number): boolean {
  return processes().some((process) => process.pid === pid);
}
