/** The extension's life: everything is made here, once, and owned by the context. */

import { window, workspace, type Disposable, type ExtensionContext } from "vscode";

import { Agent } from "./agent";
import { Approvals } from "./approvals";
import { Baselines } from "./baselines";
import { Changes } from "./changes";
import { registerCommands } from "./commands";
import { diagnostics, readDocument, writeDocument } from "./documents";
import { Failures } from "./failures";
import { Launcher } from "./launch";
import { Modes } from "./modes";
import { ApprovalNotifications } from "./notifications";
import { Prompts } from "./prompts";
import { Review } from "./review";
import { ApiKey } from "./secrets";
import { ServerCommands } from "./serverCommands";
import { Server } from "./server";
import { Sessions } from "./sessions";
import { SECTION, serverSettings } from "./settings";
import { Status } from "./status";
import { Texts } from "./texts";
import { ChangedFiles, SessionList } from "./trees";
import { Places } from "./view/places";
import { AgentView } from "./view/view";

export function activate(context: ExtensionContext): void {
  const own = <T extends Disposable>(part: T): T => {
    context.subscriptions.push(part);
    return part;
  };
  const log = own(window.createOutputChannel("Agent", { log: true }));
  const key = new ApiKey(context.secrets);
  const failures = new Failures(log);
  const launcher = new Launcher(context, key, log);
  const approvals = own(new Approvals());
  const sessions = own(new Sessions());
  const texts = own(new Texts());
  const changes = own(new Changes(approvals));
  const review = own(new Review(approvals, changes));
  const serverCommands = new ServerCommands(approvals, changes);
  const server = own(
    new Server(
      () => launcher.launch(),
      {
        event: (params) => sessions.apply(params),
        requestApproval: (request, token) => approvals.ask(request, token),
        readDocument,
        writeDocument,
        diagnostics,
        settings: () => serverSettings(workspace.getConfiguration(SECTION), workspace.isTrusted),
        command: (name, argument) => serverCommands.execute(name, argument),
      },
      log,
    ),
  );
  const agent = new Agent(server);
  const modes = own(new Modes(agent));
  const baselines = own(new Baselines(approvals, sessions, texts));
  const places = new Places(baselines);
  const view = own(
    new AgentView(context.extensionUri, { approvals, changes, failures, modes, places, server, sessions }),
  );
  const prompts = own(new Prompts(agent, view, failures));
  view.connect(prompts);
  serverCommands.connect(prompts);
  own(new ChangedFiles(sessions));
  const sessionList = own(new SessionList(agent, server, sessions));
  own(new ApprovalNotifications(approvals, (id) => changes.show(id)));
  own(new Status(server, prompts, sessions, approvals, modes));
  const parts = {
    ...{ agent, approvals, changes, failures, key, log, modes, places, prompts, review, server },
    ...{ sessionList, sessions, texts, view },
  };
  context.subscriptions.push(
    ...registerCommands(parts),
    server.onDidChangeState(({ kind }) => {
      if (kind === "running") {
        modes.refresh().catch((error: unknown) => log.warn(`the mode is not known: ${String(error)}`));
      } else if (kind !== "starting") {
        approvals.clear();
        sessions.interrupt();
      }
    }),
    key.onDidChange(() => void restartIfRunning(server, failures)),
    workspace.onDidChangeConfiguration((change) => {
      if (
        change.affectsConfiguration(`${SECTION}.server`) ||
        change.affectsConfiguration(`${SECTION}.model.apiKeyEnv`)
      ) {
        void restartIfRunning(server, failures);
      } else if (change.affectsConfiguration(SECTION)) {
        void server.settingsChanged();
      }
    }),
    workspace.onDidGrantWorkspaceTrust(() => void server.settingsChanged()),
  );
  if (launcher.startsByItself()) {
    server.start().catch((error: unknown) => failures.tell(error));
  }
}

async function restartIfRunning(server: Server, failures: Failures): Promise<void> {
  if (server.state.kind !== "stopped") {
    await server.restart().catch((error: unknown) => failures.tell(error));
  }
}
