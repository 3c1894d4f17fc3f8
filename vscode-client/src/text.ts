/** Text of the model, of tools and of files, made safe to show. */

/** For places that turn `[text](link)` into links, commands among them: notifications, tree items, the status bar. */
export function plain(text: string): string {
  return text.replace(/\]\(/g, "] (").replace(/\s*\n\s*/g, " ⏎ ");
}

/** Cut to a length, saying so. */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
