/** A console's page in Node: cookies, storage and same-origin requests as a browser has them. */
import type { Page, PageCookies, PageRequest, PageResponse, PageStorage } from './driver.ts'

export interface SentRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly status: number
}

export interface NodePage extends Page {
  /** What the page sent, in order. */
  readonly requests: readonly SentRequest[]
  /** All cookies, those that scripts do not see included: name → value. */
  readonly allCookies: () => Readonly<Record<string, string>>
}

interface Cookie {
  readonly value: string
  readonly httpOnly: boolean
  /** Milliseconds since 1970. */
  readonly expires: number
}

/** @param origin `http://127.0.0.1:PORT` of the gateway or back-end */
export function nodePage(origin: string, now: () => number = () => Date.now()): NodePage {
  const jar = new Jar(now)
  const requests: SentRequest[] = []
  async function send(path: string, init: PageRequest = {}): Promise<PageResponse> {
    if (!path.startsWith('/')) throw new Error(`Not a path of the origin: "${path}".`)
    const url = new URL(path, origin)
    const method = init.method ?? 'GET'
    const headers = { ...init.headers, ...sameOriginHeaders(origin, method) }
    const cookie = jar.header()
    const response = await fetch(url, {
      ...init,
      headers: { ...headers, ...(cookie !== '' && { cookie }) },
      redirect: 'manual'
    })
    for (const line of response.headers.getSetCookie()) jar.receive(line)
    requests.push({ method, path, headers, status: response.status })
    return response
  }
  return {
    fetch: send,
    cookies: jar.scriptCookies,
    localStorage: memoryStorage(),
    now,
    requests,
    allCookies: () => jar.all()
  }
}

function sameOriginHeaders(origin: string, method: string): Record<string, string> {
  const headers = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }
  return method === 'GET' ? headers : { ...headers, origin }
}

class Jar {
  readonly #cookies = new Map<string, Cookie>()
  readonly #now: () => number
  readonly scriptCookies: PageCookies

  constructor(now: () => number) {
    this.#now = now
    this.scriptCookies = {
      get: name => {
        const cookie = this.#live().get(name)
        return cookie?.httpOnly === false ? cookie.value : undefined
      },
      set: (name, value, expires = Infinity) => {
        if (this.#cookies.get(name)?.httpOnly === true) return
        this.#cookies.set(name, { value, httpOnly: false, expires })
      },
      remove: name => {
        if (this.#cookies.get(name)?.httpOnly !== true) this.#cookies.delete(name)
      }
    }
  }

  /** @param line a `Set-Cookie` field; the gateway and its consoles set them for all paths */
  receive(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    const maxAge = /; *max-age=(-?\d+)/i.exec(line)?.[1]
    const date = /; *expires=([^;]+)/i.exec(line)?.[1] ?? ''
    const expires =
      maxAge === undefined ? Date.parse(date) || Infinity : this.#now() + Number(maxAge) * 1000
    this.#cookies.set(name, { value, httpOnly: /; *httponly/i.test(line), expires })
  }

  /** The `Cookie` field of a request; empty without cookies. */
  header(): string {
    return [...this.#live()].map(([name, { value }]) => `${name}=${value}`).join('; ')
  }

  all(): Record<string, string> {
    return Object.fromEntries([...this.#live()].map(([name, { value }]) => [name, value]))
  }

  #live(): Map<string, Cookie> {
    for (const [name, { expires }] of this.#cookies) {
      if (expires <= this.#now()) this.#cookies.delete(name)
    }
    return this.#cookies
  }
}

function memoryStorage(): PageStorage {
  const values = new Map<string, string>()
  return {
    getItem: name => values.get(name) ?? null,
    setItem: (name, value) => {
      values.set(name, value)
    },
    removeItem: name => {
      values.delete(name)
    }
  }
}
