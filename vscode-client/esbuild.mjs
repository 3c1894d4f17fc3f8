// Bundles the extension for the extension host, and the script of the agent view for its webview.
import { context } from "esbuild";

const watch = process.argv.includes("--watch");
const common = { bundle: true, minify: !watch, sourcemap: watch, logLevel: "info", target: "es2022", outdir: "dist" };

const builds = await Promise.all([
  context({
    ...common,
    entryPoints: ["src/extension.ts"],
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["vscode"],
    mainFields: ["module", "main"],
    metafile: true,
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
