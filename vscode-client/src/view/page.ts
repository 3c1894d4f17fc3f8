/** The page of the agent view. Nothing of the model is in it: its script builds that from text, node by node. */

import { randomBytes } from "node:crypto";

import { Uri, type Webview } from "vscode";

export function page(webview: Webview, extension: Uri): string {
  const nonce = randomBytes(16).toString("hex");
  const script = webview.asWebviewUri(Uri.joinPath(extension, "dist", "view.js")).toString();
  const style = webview.asWebviewUri(Uri.joinPath(extension, "media", "view.css")).toString();
  const policy = [
    "default-src 'none'",
    `style-src ${webview.cspSource}`,
    `script-src 'nonce-${nonce}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="stylesheet" href="${style}" />
    <title>Agent</title>
  </head>
  <body>
    <main id="transcript" role="log" aria-live="off" aria-label="Transcript" tabindex="0"></main>
    <section id="questions" aria-label="Questions of the agent"></section>
    <p id="announcer" role="status" aria-live="polite" class="unseen"></p>
    <footer>
      <form id="prompt">
        <label class="unseen" for="text">What shall the agent do?</label>
        <textarea id="text" rows="3" placeholder="What shall the agent do?" aria-describedby="hint"></textarea>
        <p id="hint" class="hint">Enter sends, Shift+Enter begins a new line</p>
        <div class="bar">
          <button id="mode" type="button" class="quiet"></button>
          <span class="space"></span>
          <button id="cancel" type="button" class="secondary" hidden>Cancel</button>
          <button id="send" type="submit">Send</button>
        </div>
      </form>
    </footer>
    <script nonce="${nonce}" src="${script}"></script>
  </body>
</html>
`;
}
