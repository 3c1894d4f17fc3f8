// Bundles the extension for the extension host, its language client beside it (loaded with the first start of the
// server), and the script of the agent view for its webview.
import { readFile } from "node:fs/promises";

import { context } from "esbuild";

const watch = process.argv.includes("--watch");
const outdir = process.argv.includes("--out") ? process.argv[process.argv.indexOf("--out") + 1] : "dist";
const common = {
  bundle: true,
  minify: !watch,
  sourcemap: watch,
  logLevel: "info",
  outdir,
  legalComments: "none",
};

/** TypeScript's helpers for imports stand in every file of the language client; in the bundle they stand once. */
const sharedHelpers = {
  name: "shared-helpers",
  setup(build) {
    const helpers = /^var __createBinding = [^]*?(?=^Object\.defineProperty\(exports, "__esModule")/m;
    const shared = 'const { __createBinding, __exportStar, __importDefault, __importStar } = require("tslib");\n';
    build.onLoad({ filter: /node_modules.vscode-.*\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replace(helpers, shared),
    }));
  },
};

const builds = await Promise.all([
  context({
    ...common,
    entryPoints: ["src/extension.ts", "src/agentConnection.ts"],
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["vscode", "./agentConnection"],
    supported: { "dynamic-import": false }, // a plain require, which loads the file beside
    mainFields: ["module", "main"],
    plugins: [sharedHelpers],
  }),
  context({
    ...common,
    entryPoints: { view: "src/webview/main.ts" },
    platform: "browser",
    target: "es2022",
    format: "iife",
  }),
]);
for (const build of builds) {
  if (watch) {
    await build.watch();
  } else {
    await build.rebuild();
    await build.dispose();
  }
}
