/** What a console finds around itself, in a browser and in Node. */
import type { Json, Place } from './console.ts'

/** Cookies, but those with `HttpOnly`, or localStorage. */
export interface Values {
  readonly get: (name: string) => string | undefined
  /** @param expires of a cookie, in milliseconds since 1970. Default: the browser's session. */
  readonly set: (name: string, value: string, expires?: number) => void
  readonly remove: (name: string) => void
}

export interface Page {
  /** Same-origin; `path` begins with `/`. The page sends and keeps cookies as a browser does. */
  readonly fetch: (path: string, init?: RequestInit) => Promise<Pick<Response, 'status' | 'text'>>
  readonly cookies: Values
  readonly localStorage: Values
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The values that a console keeps in a page, by name. */
export class Places {
  readonly #page: Page
  readonly #places: Readonly<Record<string, Place>>

  constructor(page: Page, places: Readonly<Record<string, Place>>) {
    this.#page = page
    this.#places = places
  }

  all(): Record<string, Json> {
    const entries = Object.entries(this.#places).map(([name, place]) => {
      const entry = this.#entry(place)
      return [name, place.member === undefined ? entry : entry?.[place.member]]
    })
    return Object.fromEntries(entries) as Record<string, Json>
  }

  /** @returns whether there is a place of that name */
  set(name: string, value: Json): boolean {
    const place = this.#places[name]
    if (place === undefined) return false
    const { member, as, expires } = place
    const entry = member === undefined ? value : { ...this.#entry(place), [member]: value }
    const text = as === 'JSON' ? JSON.stringify(entry ?? null) : String(entry)
    this.#values(place).set(place.key, text, expires?.(value, this.#page.now()))
    return true
  }

  forget(): void {
    for (const place of Object.values(this.#places)) this.#values(place).remove(place.key)
  }

  #values({ in: where }: Place): Values {
    return where === 'cookie' ? this.#page.cookies : this.#page.localStorage
  }

  #entry(place: Place): Json {
    const text = this.#values(place).get(place.key)
    return place.as === 'JSON' ? (JSON.parse(text ?? 'null') ?? undefined) : text
  }
}

export interface NodePage extends Page {
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
  /** `METHOD /path?query` of what the page sent, in order. */
  readonly sent: readonly string[]
  /** Of all cookies, those that scripts do not see included. */
  readonly cookieNames: () => readonly string[]
}

/** A page of a browser, in Node. */
export function nodePage(origin: string, now: () => number = () => Date.now()): NodePage {
  const cookies = new Cookies(now)
  const sent: string[] = []
  const stored = new Map<string, string>()
  return {
    now,
    sent,
    cookies,
    cookieNames: () => [...cookies.live().keys()],
    localStorage: {
      get: name => stored.get(name),
      set: (name, value) => stored.set(name, value),
      remove: name => stored.delete(name)
    },
    fetch: async (path, init = {}) => {
      const { method = 'GET', headers } = init
      if (!path.startsWith('/')) throw new Error(`Not a path of the origin: "${path}".`)
      sent.push(`${method} ${path}`)
      const cookie = [...cookies.live()].map(([name, { value }]) => `${name}=${value}`).join('; ')
      const response = await fetch(new URL(path, origin), {
        ...init,
        headers: {
          'sec-fetch-site': 'same-origin',
          'sec-fetch-mode': 'cors',
          ...(headers as Record<string, string> | undefined),
          ...(method !== 'GET' && { origin }),
          ...(cookie !== '' && { cookie })
        },
        redirect: 'manual'
      })
      for (const line of response.headers.getSetCookie()) cookies.receive(line)
      return response
    }
  }
}

interface Cookie {
  readonly value: string
  readonly isHttpOnly: boolean
  /** Milliseconds since 1970. */
  readonly expires: number
}

class Cookies implements Values {
  readonly #cookies = new Map<string, Cookie>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  get(name: string): string | undefined {
    const cookie = this.live().get(name)
    return cookie?.isHttpOnly === false ? cookie.value : undefined
  }

  set(name: string, value: string, expires = Infinity): void {
    if (this.#cookies.get(name)?.isHttpOnly) return
    this.#cookies.set(name, { value, isHttpOnly: false, expires })
  }

  remove(name: string): void {
    this.set(name, '', 0)
  }

  /** @param line a `Set-Cookie` field; the gateway and its consoles set them for all paths */
  receive(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    const maxAge = /; *max-age=(-?\d+)/i.exec(line)?.[1]
    const date = Date.parse(/; *expires=([^;]+)/i.exec(line)?.[1] ?? '') || Infinity
    const expires = maxAge === undefined ? date : this.#now() + Number(maxAge) * 1000
    this.#cookies.set(name, { value, isHttpOnly: /; *httponly/i.test(line), expires })
  }

  live(): ReadonlyMap<string, Cookie> {
    for (const [name, { expires }] of this.#cookies) {
      if (expires <= this.#now()) this.#cookies.delete(name)
    }
    return this.#cookies
  }
}
