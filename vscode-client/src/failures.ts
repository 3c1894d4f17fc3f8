/** What went wrong, told to the human with what can be done about it. */

import { commands, window, type LogOutputChannel } from "vscode";

import { EnvironmentError } from "./environment";
import { NoFolderError } from "./launch";
import { plain } from "./text";

interface Remedy {
  readonly title: string;
  readonly command: string;
}

const OPEN_FOLDER: Remedy = { title: "Open Folder…", command: "workbench.action.files.openFolder" };
const SET_KEY: Remedy = { title: "Set API Key…", command: "agentLsp.setApiKey" };
const SETTINGS: Remedy = { title: "Open Settings", command: "agentLsp.openSettings" };
const RETRY: Remedy = { title: "Try Again", command: "agentLsp.restartServer" };
const LOG: Remedy = { title: "Show Log", command: "agentLsp.showLog" };

export class Failures {
  constructor(private readonly log: LogOutputChannel) {}

  async tell(error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    this.log.error(message);
    const remedies = remediesFor(error, message);
    const chosen = await window.showErrorMessage(`Agent: ${plain(message)}`, ...remedies.map(({ title }) => title));
    const remedy = remedies.find(({ title }) => title === chosen);
    if (remedy !== undefined) {
      await commands.executeCommand(remedy.command);
    }
  }
}

function remediesFor(error: unknown, message: string): readonly Remedy[] {
  if (error instanceof NoFolderError) {
    return [OPEN_FOLDER];
  }
  if (error instanceof EnvironmentError) {
    return [LOG, RETRY, SETTINGS];
  }
  if (/\bAPI key\b|\bmodel\.\w+/i.test(message)) {
    return [SET_KEY, SETTINGS, LOG];
  }
  return [LOG];
}
