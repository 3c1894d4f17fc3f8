/** Going through the questions that wait. */

import { window, type QuickPickItem } from "vscode";

import type { Parts } from "./parts";
import { plain } from "./text";

/** Open what waits: at once if it is one, chosen from a list if there are more. */
export async function pickApproval({ approvals, changes }: Parts): Promise<void> {
  const { questions } = approvals;
  const [first] = questions;
  if (first === undefined) {
    void window.showInformationMessage("Agent: nothing waits for your answer.");
    return;
  }
  const items = questions.map(({ request }): QuickPickItem & { readonly id: string } => ({
    id: request.id,
    label: `${request.tool}: ${plain(request.target)}`,
    detail: plain(request.reason),
  }));
  const options = { title: "Agent: Pending Approvals", placeHolder: "Which one do you want to look at?" };
  const chosen = questions.length === 1 ? first.request : await window.showQuickPick(items, options);
  if (chosen !== undefined) {
    await changes.show(chosen.id);
  }
}
