/** Commands of the server that its code actions name, done in this window's own way where there is one. */

import { approvalAnswer, promptParams } from "./protocol";
import type { Approvals } from "./approvals";
import type { Changes } from "./changes";
import type { Prompts } from "./prompts";
import { number, object, oneOf, string } from "./shape";

const named = object({ id: string });
const partDecision = object({ id: string, hunk: number, decision: oneOf(["allow", "deny"]) });

export class ServerCommands {
  private prompts: Prompts | undefined;

  constructor(
    private readonly approvals: Approvals,
    private readonly changes: Changes,
  ) {}

  /** Take what runs prompts; it is made later, because it needs the server. */
  connect(prompts: Prompts): void {
    this.prompts = prompts;
  }

  /** Do a command; undefined leaves it to the server. */
  execute(name: string, argument: unknown): Promise<unknown> | undefined {
    switch (name) {
      case "agent.run":
        return this.prompts?.run(promptParams(argument));
      case "agent.approvals.show":
        return this.changes.show(named(argument).id);
      case "agent.approvals.answer":
        return Promise.resolve(this.approvals.answer(named(argument).id, approvalAnswer(argument)));
      case "agent.approvals.part": {
        const { id, hunk, decision } = partDecision(argument);
        return Promise.resolve(this.approvals.decide(id, hunk, decision === "allow"));
      }
      default:
        return undefined;
    }
  }
}
