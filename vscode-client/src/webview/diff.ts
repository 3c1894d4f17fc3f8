/** Changes as lines, added and removed ones marked by sign and colour. */

import { element } from "./dom";

const MOST_LINES = 400;

/** A unified diff. */
export function diffBlock(diff: string): HTMLElement {
  const lines = diff.split("\n");
  if (lines.at(-1) === "") {
    lines.pop();
  }
  const shown = lines
    .slice(0, MOST_LINES)
    .map((line, index) => diffLine(line, index < 2 && /^(---|\+\+\+) /.test(line)));
  const left = lines.length - shown.length;
  return element("pre", { class: "diff", tabindex: "0" }, ...shown, ...(left > 0 ? [`[${left} more lines]`] : []));
}

function diffLine(line: string, isHead: boolean): HTMLElement {
  const kind =
    isHead || line.startsWith("@@")
      ? "head"
      : line.startsWith("+")
        ? "added"
        : line.startsWith("-")
          ? "removed"
          : "same";
  return element("span", { class: `line ${kind}` }, `${line}\n`);
}

/** What an edit or a write was asked to do, as a diff of its arguments; undefined for another tool. */
export function argumentsDiff(args: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof args.content === "string") {
    return marked("+", args.content);
  }
  if (!Array.isArray(args.edits)) {
    return undefined;
  }
  return (args.edits as readonly unknown[])
    .map((edit) => {
      const { old, new: replacement } = edit as Readonly<Record<string, unknown>>;
      return `@@\n${marked("-", String(old))}${marked("+", String(replacement))}`;
    })
    .join("");
}

function marked(sign: string, text: string): string {
  const lines = text.split("\n");
  if (lines.at(-1) === "") {
    lines.pop();
  }
  return lines.map((line) => `${sign}${line}\n`).join("");
}
