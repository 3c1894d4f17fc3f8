// Where things are, all inside the clone.

import { mkdirSync } from "node:fs";
import path from "node:path";

export const ROOT = path.resolve(import.meta.dirname, "../../..");
export const CACHE = path.join(ROOT, ".cache");
/** Built by scripts/install-code-server.sh. */
export const CODE_SERVER = path.join(CACHE, "code-server", "node_modules", "code-server", "out", "node", "entry.js");
/** Has the server and what its tests need. */
export const PYTHON = path.join(ROOT, ".venv", "bin", "python");
/** Built by scripts/package.sh. */
export const VSIX = path.join(CACHE, "vsix", "agent-lsp.vsix");
export const IMAGES = path.join(ROOT, "docs", "images");
/** Debian's, which is where it puts it. */
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** A new, empty place for what a run leaves: logs, pictures of failures. */
export const RUN = path.join(CACHE, "e2e", new Date().toISOString().replaceAll(":", "-"));
mkdirSync(RUN, { recursive: true });
