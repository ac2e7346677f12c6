/** A page whose requests are answered in memory, as the mock of a console answers them. */
import type { Page, PageRequest } from '../driver.ts'

export interface FakeRequest {
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
  readonly signedIn: boolean
}

export interface FakeResponse {
  readonly status?: number
  readonly json: unknown
}

/** `METHOD /path` → its response. */
export type FakeRoutes = Readonly<Record<string, (request: FakeRequest) => FakeResponse>>

/** A change of one route's response: what another family, or a careless config, would answer. */
export type Change = Readonly<Record<string, (json: never) => FakeResponse>>

export interface Fake {
  /** What the mock of the console answers. */
  readonly routes: FakeRoutes
  /** The header field that must carry the token, and its value. */
  readonly token: readonly [field: string, value: string]
}

export interface FakePage extends Page {
  /** `METHOD /path`, in order. */
  readonly requests: string[]
  /** The token is worth nothing until the next sign-in. */
  endSession: () => void
  /** The time goes on. */
  pass: (ms: number) => void
}

export const firstPage = Array.from({ length: 10 }, (_, index) => ({ id: index + 1 }))
export const secondPage = Array.from({ length: 10 }, (_, index) => ({ id: index + 11 }))

export function fakePage({ routes, token: [field, value] }: Fake, change: Change = {}): FakePage {
  const requests: string[] = []
  const values = new Map<string, string>()
  const cookies = new Map<string, { value: string; expires: number }>()
  let ended = false
  let time = Date.UTC(2026, 0, 1)
  const now = () => time
  const live = (name: string) => {
    const cookie = cookies.get(name)
    return cookie !== undefined && cookie.expires > time ? cookie.value : undefined
  }
  async function send(path: string, { method = 'GET', headers = {}, body }: PageRequest = {}) {
    const { pathname, searchParams: query } = new URL(path, 'http://console')
    const name = `${method} ${pathname}`
    requests.push(name)
    const lower = Object.fromEntries(
      Object.entries(headers).map(([key, text]) => [key.toLowerCase(), text])
    )
    const signedIn = !ended && lower[field] === value
    const request = { query, headers: lower, body: JSON.parse(body ?? '{}'), signedIn }
    const route = routes[name]
    const plain = route?.(request) ?? { status: 404, json: 'Not Found' }
    if (/login/i.test(name)) ended = false
    const response = change[name]?.(plain.json as never) ?? plain
    return {
      status: response.status ?? 200,
      headers: { get: () => null },
      text: async () => JSON.stringify(response.json)
    }
  }
  return {
    fetch: send,
    cookies: {
      get: live,
      set: (name, text, expires = Infinity) => {
        cookies.set(name, { value: text, expires })
      },
      remove: name => {
        cookies.delete(name)
      }
    },
    localStorage: {
      getItem: name => values.get(name) ?? null,
      setItem: (name, text) => {
        values.set(name, text)
      },
      removeItem: name => {
        values.delete(name)
      }
    },
    now,
    requests,
    endSession: () => {
      ended = true
    },
    pass: ms => {
      time += ms
    }
  }
}
