/** What consoles are made of: a screen, pages, and how their code reads JSON. */
import type {
  Credentials,
  OpenConsole,
  Page,
  Screen,
  ShownForm,
  ShownList,
  ShownMenu,
  ShownUser
} from './driver.ts'

/** An error of the console's code, or one that its request layer throws. */
export class ConsoleFault extends Error {}

export class Display {
  at: Screen<unknown>['at'] = 'sign-in'
  #messages: string[] = []

  /** Shows a message. Components show nothing for what is not a text. */
  say(message: unknown): void {
    this.#messages.push(typeof message === 'string' ? message : '')
  }

  /** Runs what a user's action starts. A fault of the console ends the step. */
  async step<Content>(act: () => Promise<Content | undefined>): Promise<Screen<Content>> {
    this.#messages = []
    try {
      const content = await act()
      return { at: this.at, messages: this.#messages, content }
    } catch (error) {
      if (!(error instanceof ConsoleFault)) throw error
      return { at: this.at, messages: this.#messages, content: undefined, fault: error.message }
    }
  }
}

/** The request layer of a console. */
export class Layer {
  readonly page: Page
  readonly display: Display

  constructor(page: Page, display: Display) {
    this.page = page
    this.display = display
  }
}

/** What differs from console to console; a `ConsoleFault` ends each step. */
export interface Parts {
  /** What the console finds when its page is loaded; without it, it shows the sign-in page. */
  readonly token: () => unknown
  /** With a token, when the page is loaded. */
  readonly enter: () => Promise<ShownUser | undefined>
  readonly signIn: (credentials: Credentials) => Promise<ShownUser | undefined>
  readonly menu: () => Promise<ShownMenu | undefined>
  readonly list: (page: number, size: number, title?: string) => Promise<ShownList | undefined>
  /** Rejects where the form is not saved. */
  readonly save: (values: Readonly<Record<string, unknown>>) => Promise<unknown>
  /** What a form reads of the error; left out where it gets nothing but the message. */
  readonly fieldErrors?: (error: ConsoleFault) => unknown
  readonly refresh?: () => Promise<boolean>
  readonly signOut: () => Promise<unknown>
}

export function openConsole(partsOf: (display: Display) => Parts): OpenConsole {
  const display = new Display()
  const parts = partsOf(display)
  const { fieldErrors, refresh } = parts
  return {
    start: () =>
      display.step(async () => {
        if (parts.token()) return parts.enter()
        display.at = 'sign-in'
        return undefined
      }),
    signIn: credentials => display.step(() => parts.signIn(credentials)),
    menu: () => display.step(parts.menu),
    list: (page, size, title) => display.step(() => parts.list(page, size, title)),
    save: values =>
      display.step(() =>
        orElse<ShownForm>(
          async () => {
            await parts.save(values)
            return { saved: true }
          },
          async error => ({
            saved: false,
            ...(fieldErrors && { fieldErrors: fieldErrorsOf(fieldErrors(error)) })
          })
        )
      ),
    ...(refresh && { refresh: () => display.step(refresh) }),
    signOut: () =>
      display.step(async () => {
        await parts.signOut()
        return undefined
      })
  }
}

/** What is done where a fault of the console ended an action; every other error goes on. */
export async function orElse<Result>(
  act: () => Promise<Result>,
  otherwise: (fault: ConsoleFault) => Promise<Result>
): Promise<Result> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof ConsoleFault)) throw error
    return await otherwise(error)
  }
}

/** Values in localStorage, as JSON; what is undefined is not stored. */
export const stored = ({ localStorage }: Page, prefix = '') => ({
  get: (name: string): unknown => {
    const value = localStorage.getItem(prefix + name)
    return value === null ? undefined : (JSON.parse(value) as unknown)
  },
  set: (name: string, value: unknown): void => {
    if (value === undefined) localStorage.removeItem(prefix + name)
    else localStorage.setItem(prefix + name, JSON.stringify(value))
  }
})
export type Stored = ReturnType<typeof stored>

/** `value.a.b` as JavaScript reads it: a fault where `value` or `value.a` is null or undefined. */
export function read(value: unknown, ...path: readonly string[]): unknown {
  let place = value
  for (const member of path) {
    if (place === null || place === undefined) {
      throw new ConsoleFault(`Cannot read properties of ${String(place)} (reading '${member}')`)
    }
    place = Object.hasOwn(Object(place), member) ? Reflect.get(Object(place), member) : undefined
  }
  return place
}

/** What a page shows of a member; empty where it is missing. */
export function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** A list, as the console's code goes through it: a fault where it is none. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new ConsoleFault(`${JSON.stringify(value)} is not iterable`)
}

export function textsOf(value: unknown): readonly string[] {
  return listOf(value).map(text)
}

/** The titles of a menu that are not hidden, under `meta.title`. */
export function titlesOf(menu: unknown): readonly string[] {
  return listOf(menu)
    .filter(entry => !read(entry, 'hidden'))
    .map(entry => text(read(entry, 'meta', 'title')))
}

/** The rows and the total of a table. */
export function tableOf(rows: unknown, total: unknown): ShownList {
  const shown = listOf(rows).map(row => Object(row) as Readonly<Record<string, unknown>>)
  if (typeof total !== 'number') throw new ConsoleFault(`total is ${JSON.stringify(total)}`)
  return { rows: shown, total }
}

/** Tables that take page and size from the response lose their place where it tells others. */
export function keepsPlace(shown: readonly unknown[], asked: readonly unknown[]): void {
  if (shown.every((value, index) => value === asked[index])) return
  throw new ConsoleFault('the list is not of the page that was asked for')
}

/** Field → message, from an object with a text or a list of texts by field. */
function fieldErrorsOf(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(
    Object.entries(value).map(([field, messages]) => [field, [messages].flat().map(text).join(' ')])
  )
}
