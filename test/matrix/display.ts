/** The screen of a console, and how its code reads JSON. */
import type { Screen } from './driver.ts'

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

  /** Saves a form of a page that gets nothing of a refusal but the message. */
  save(send: () => Promise<unknown>): Promise<Screen<{ readonly saved: boolean }>> {
    return this.step(async () => {
      try {
        await send()
        return { saved: true }
      } catch (error) {
        if (!(error instanceof ConsoleFault)) throw error
        return { saved: false }
      }
    })
  }
}

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

/** The rows and the total of a table. */
export function tableOf(rows: unknown, total: unknown) {
  const shown = listOf(rows).map(row => Object(row) as Readonly<Record<string, unknown>>)
  if (typeof total !== 'number') throw new ConsoleFault(`total is ${JSON.stringify(total)}`)
  return { rows: shown, total }
}

/** Field → message, from an object with a text or a list of texts by field. */
export function fieldErrorsOf(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(
    Object.entries(value).map(([field, messages]) => [field, [messages].flat().map(text).join(' ')])
  )
}
