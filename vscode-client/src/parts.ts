/** What the commands work with. */

import type { LogOutputChannel } from "vscode";

import type { Agent } from "./agent";
import type { Approvals } from "./approvals";
import type { Changes } from "./changes";
import type { Failures } from "./failures";
import type { Modes } from "./modes";
import type { Prompts } from "./prompts";
import type { Review } from "./review";
import type { ApiKey } from "./secrets";
import type { Server } from "./server";
import type { Sessions } from "./sessions";
import type { Texts } from "./texts";
import type { SessionList } from "./trees";
import type { Places } from "./view/places";

/** The agent view, as far as commands need it. */
export interface View {
  readonly visible: boolean;
  reveal(): Promise<void>;
  /** Bring it up, with the keyboard in its prompt box. */
  focus(): Promise<void>;
}

export interface Parts {
  readonly agent: Agent;
  readonly approvals: Approvals;
  readonly changes: Changes;
  readonly failures: Failures;
  readonly key: ApiKey;
  readonly log: LogOutputChannel;
  readonly modes: Modes;
  readonly places: Places;
  readonly prompts: Prompts;
  readonly review: Review;
  readonly server: Server;
  readonly sessionList: SessionList;
  readonly sessions: Sessions;
  readonly texts: Texts;
  readonly view: View;
}
