/** Values from outside, checked against the shape that the types promise. Unknown fields are left out. */

export class ShapeError extends Error {}

/** Reads a value that stands at a place. Raises ShapeError. */
export type Shape<T> = (value: unknown, at?: string) => T;

export type Shaped<S> = S extends Shape<infer T> ? T : never;

type Fields = Readonly<Record<string, Shape<unknown>>>;

type Read<F extends Fields> = { readonly [Key in keyof F]: Shaped<F[Key]> };

type Tagged<Tag extends string, Kinds extends Readonly<Record<string, Shape<object>>>> = {
  [Kind in keyof Kinds]: Readonly<Record<Tag, Kind>> & Shaped<Kinds[Kind]>;
}[keyof Kinds];

function primitive<T>(name: string, is: (value: unknown) => value is T): Shape<T> {
  return (value, at = "value") => {
    if (!is(value)) {
      throw new ShapeError(`${at}: expected ${name}`);
    }
    return value;
  };
}

export const string = primitive("a string", (value) => typeof value === "string");
export const number = primitive("a number", (value) => typeof value === "number");
export const boolean = primitive("a boolean", (value) => typeof value === "boolean");
export const json = primitive("a value", (value): value is unknown => value !== undefined);
const record = primitive(
  "an object",
  (value): value is Readonly<Record<string, unknown>> =>
    typeof value === "object" && value !== null && !Array.isArray(value),
);

export function oneOf<const Choices extends readonly string[]>(choices: Choices): Shape<Choices[number]> {
  return primitive(`one of ${choices.join(", ")}`, (value): value is Choices[number] =>
    choices.some((choice) => choice === value),
  );
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value, at) => (value === null ? null : shape(value, at));
}

export function list<T>(shape: Shape<T>): Shape<readonly T[]> {
  return (value, at = "value") => {
    if (!Array.isArray(value)) {
      throw new ShapeError(`${at}: expected a list`);
    }
    return value.map((item, index) => shape(item, `${at}.${index}`));
  };
}

export function pair<T>(shape: Shape<T>): Shape<readonly [T, T]> {
  return (value, at = "value") => {
    const [first, second, ...rest] = list(shape)(value, at);
    if (first === undefined || second === undefined || rest.length > 0) {
      throw new ShapeError(`${at}: expected two values`);
    }
    return [first, second];
  };
}

export function map<T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value, at = "value") =>
    Object.fromEntries(Object.entries(record(value, at)).map(([key, item]) => [key, shape(item, `${at}.${key}`)]));
}

/** An object with these fields, and maybe with the optional ones. */
export function object<F extends Fields>(fields: F): Shape<Read<F>>;
export function object<F extends Fields, O extends Fields>(fields: F, optional: O): Shape<Read<F> & Partial<Read<O>>>;
export function object(fields: Fields, optional: Fields = {}): Shape<object> {
  return (value, at = "value") => {
    const given = record(value, at);
    const found: Record<string, unknown> = {};
    for (const [key, shape] of Object.entries(fields)) {
      found[key] = shape(given[key], `${at}.${key}`);
    }
    for (const [key, shape] of Object.entries(optional)) {
      if (given[key] !== undefined) {
        found[key] = shape(given[key], `${at}.${key}`);
      }
    }
    return found;
  };
}

/** An object of one of several kinds, which a field names. */
export function tagged<Tag extends string, Kinds extends Readonly<Record<string, Shape<object>>>>(
  tag: Tag,
  kinds: Kinds,
): Shape<Tagged<Tag, Kinds>> {
  return (value, at = "value") => {
    const kind = string(record(value, at)[tag], `${at}.${tag}`);
    const shape = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
    if (shape === undefined) {
      throw new ShapeError(`${at}.${tag}: ${kind} is not known`);
    }
    return { [tag]: kind, ...shape(value, at) } as Tagged<Tag, Kinds>;
  };
}
