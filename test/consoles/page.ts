/** What a console finds around itself, in a browser and in Node. */
import type { Json, Place } from './console.ts'

export interface Page {
  /** Same-origin; `path` begins with `/`. The page sends and keeps cookies as a browser does. */
  readonly fetch: (path: string, init?: PageRequest) => Promise<PageResponse>
  /** The cookies that scripts see: never those with `HttpOnly`. */
  readonly cookies: PageCookies
  readonly localStorage: PageStorage
  /** Milliseconds since 1970. */
  readonly now: () => number
}

export interface PageRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface PageResponse {
  readonly status: number
  readonly text: () => Promise<string>
}

export interface PageCookies {
  readonly get: (name: string) => string | undefined
  /** @param expires milliseconds since 1970; without it, a cookie of the browser's session */
  readonly set: (name: string, value: string, expires?: number) => void
  readonly remove: (name: string) => void
}

export interface PageStorage {
  readonly getItem: (name: string) => string | null
  readonly setItem: (name: string, value: string) => void
  readonly removeItem: (name: string) => void
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
    const entries = Object.entries(this.#places)
    return Object.fromEntries(entries.map(([name, place]) => [name, this.#read(place)]))
  }

  forget(): void {
    for (const { cookie = '', storage = '' } of Object.values(this.#places)) {
      this.#page.cookies.remove(cookie)
      this.#page.localStorage.removeItem(storage)
    }
  }

  /** @returns whether there is a place of that name */
  set(name: string, value: Json): boolean {
    const place = this.#places[name]
    if (place === undefined) return false
    const { member } = place
    this.#write(place, member === undefined ? value : { ...this.#entry(place), [member]: value })
    return true
  }

  #read(place: Place): Json {
    const entry = this.#entry(place)
    return place.member === undefined ? entry : entry?.[place.member]
  }

  #entry({ cookie, storage = '', as }: Place): Json {
    const { cookies, localStorage } = this.#page
    const text = cookie === undefined ? localStorage.getItem(storage) : cookies.get(cookie)
    if (text === null || text === undefined) return undefined
    return as === 'JSON' ? (JSON.parse(text) ?? undefined) : text
  }

  #write({ cookie, storage = '', as, expires }: Place, value: Json): void {
    const { cookies, localStorage, now } = this.#page
    const text = as === 'JSON' ? JSON.stringify(value ?? null) : String(value)
    if (cookie === undefined) localStorage.setItem(storage, text)
    else cookies.set(cookie, text, expires?.(value, now()))
  }
}

export interface NodePage extends Page {
  readonly fetch: (path: string, init?: PageRequest) => Promise<Response>
  /** `METHOD /path?query` of what the page sent, in order. */
  readonly sent: readonly string[]
  /** Of all cookies, those that scripts do not see included. */
  readonly cookieNames: () => readonly string[]
}

/** A page of a browser, in Node. */
export function nodePage(origin: string, now: () => number = () => Date.now()): NodePage {
  const jar = new Jar(now)
  const sent: string[] = []
  const stored = new Map<string, string>()
  return {
    now,
    sent,
    cookies: jar,
    cookieNames: () => [...jar.live().keys()],
    localStorage: {
      getItem: name => stored.get(name) ?? null,
      setItem: (name, value) => stored.set(name, value),
      removeItem: name => stored.delete(name)
    },
    fetch: async (path, init = {}) => {
      const { method = 'GET', headers } = init
      if (!path.startsWith('/')) throw new Error(`Not a path of the origin: "${path}".`)
      sent.push(`${method} ${path}`)
      const cookie = [...jar.live()].map(([name, { value }]) => `${name}=${value}`).join('; ')
      const response = await fetch(new URL(path, origin), {
        ...init,
        headers: {
          'sec-fetch-site': 'same-origin',
          'sec-fetch-mode': 'cors',
          ...headers,
          ...(method !== 'GET' && { origin }),
          ...(cookie !== '' && { cookie })
        },
        redirect: 'manual'
      })
      for (const line of response.headers.getSetCookie()) jar.receive(line)
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

class Jar implements PageCookies {
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
