/** The script of the agent view: shows what the extension tells, and tells what the human does. */

import type { FromView, ShownState, ToView } from "../view/messages";
import { button, byId, element } from "./dom";
import { Markdown } from "./markdown";
import { Questions } from "./questions";
import { Transcript } from "./transcript";

declare function acquireVsCodeApi(): {
  postMessage(message: FromView): void;
  getState(): unknown;
  setState(state: unknown): void;
};

function start(): void {
  const vscode = acquireVsCodeApi();
  const send = (message: FromView): void => vscode.postMessage(message);
  const text = byId("text", HTMLTextAreaElement);
  const cancel = byId("cancel", HTMLButtonElement);
  const mode = byId("mode", HTMLButtonElement);
  const announcer = byId("announcer", HTMLElement);
  const root = byId("transcript", HTMLElement);
  const announce = (said: string): void => {
    announcer.textContent = said;
  };
  const markdown = new Markdown((href) => send({ type: "openLink", href }));
  const transcript = new Transcript(root, { markdown, send });
  const questions = new Questions(byId("questions", HTMLElement), send, announce);
  let wasRunning = false;

  const showState = (state: ShownState): void => {
    cancel.hidden = !state.running;
    mode.hidden = state.mode === "";
    mode.textContent = state.mode.replaceAll("_", " ");
    mode.setAttribute("aria-label", `Mode: ${state.mode.replaceAll("_", " ")}. Set mode`);
    questions.show(state.questions);
    root.querySelector(".problem")?.remove();
    if (state.problem !== "") {
      const retry = button("Try Again", () => send({ type: "run", command: "agentLsp.restartServer" }), {
        class: "secondary",
      });
      root.prepend(
        element(
          "section",
          { class: "problem note error" },
          element("p", {}, `The agent does not run: ${state.problem}`),
          retry,
        ),
      );
    }
    if (state.running !== wasRunning) {
      announce(state.running ? "The agent works." : "The agent is done.");
      wasRunning = state.running;
    }
  };

  const submit = (): void => {
    const prompt = text.value.trim();
    if (prompt !== "") {
      send({ type: "prompt", text: prompt });
      text.value = "";
      vscode.setState({ draft: "" });
    }
  };

  byId("prompt", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  });
  text.addEventListener("input", () => vscode.setState({ draft: text.value }));
  cancel.addEventListener("click", () => send({ type: "cancel" }));
  mode.addEventListener("click", () => send({ type: "run", command: "agentLsp.setMode" }));
  window.addEventListener("message", ({ data }: MessageEvent<ToView>) => {
    switch (data.type) {
      case "session":
        transcript.show(data.session);
        break;
      case "turn":
        transcript.showTurn(data.turn);
        break;
      case "items":
        transcript.showItems(data.turn, data.items);
        break;
      case "state":
        showState(data.state);
        break;
      case "focus":
        text.focus();
        break;
    }
  });
  text.value = draft(vscode.getState());
  send({ type: "ready" });
}

/** What was typed and not sent when the view was last closed. */
function draft(state: unknown): string {
  const kept = typeof state === "object" && state !== null && "draft" in state ? state.draft : "";
  return typeof kept === "string" ? kept : "";
}

start();
