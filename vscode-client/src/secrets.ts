/** The API key, kept where VS Code keeps secrets and given to the server's process alone. */

import { window, type ExtensionContext } from "vscode";

const NAME = "agentLsp.apiKey";

export class ApiKey {
  constructor(private readonly secrets: ExtensionContext["secrets"]) {}

  /** Hears of a change, in whatever window. */
  readonly onDidChange: (listener: () => void) => { dispose(): void } = (listener) =>
    this.secrets.onDidChange(({ key }) => {
      if (key === NAME) {
        listener();
      }
    });

  async get(): Promise<string | undefined> {
    return this.secrets.get(NAME);
  }

  /** Ask for a key and keep it; an empty one removes what was kept. */
  async ask(): Promise<void> {
    const key = await window.showInputBox({
      title: "Agent: API Key",
      prompt: "The key of the model's endpoint. Leave it empty to remove the key that is kept.",
      password: true,
      ignoreFocusOut: true,
    });
    if (key === undefined) {
      return;
    }
    if (key.trim() === "") {
      await this.secrets.delete(NAME);
      void window.showInformationMessage("Agent: no API key is kept any more.");
    } else {
      await this.secrets.store(NAME, key.trim());
      void window.showInformationMessage("Agent: the API key is kept in VS Code's secret storage.");
    }
  }
}
