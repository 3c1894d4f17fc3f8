/** Nodes made of text alone: nothing that is shown is ever parsed as HTML. */

type Child = Node | string;

/** An element with attributes and children. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | boolean>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false) {
      made.setAttribute(key, value === true ? "" : value);
    }
  }
  made.append(...children);
  return made;
}

export function button(
  label: string,
  action: () => void,
  attributes: Readonly<Record<string, string | boolean>> = {},
): HTMLButtonElement {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", action);
  return made;
}

/** Something that unfolds; stays as the human left it when what is inside is shown anew. */
export function folded(
  id: string,
  summary: readonly Child[],
  content: readonly Child[],
  open: boolean,
  attributes: Readonly<Record<string, string>> = {},
): HTMLDetailsElement {
  const isOpen = document.getElementById(id)?.hasAttribute("open") ?? open;
  return element("details", { id, open: isOpen, ...attributes }, element("summary", {}, ...summary), ...content);
}

export function byId<E extends HTMLElement>(id: string, kind: new () => E): E {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`the page has no ${id}`);
  }
  return found;
}
