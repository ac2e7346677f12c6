/** Requests of `init` to a back-end: bounded, timed out, and no redirect is followed. */
import { readJson } from '../../json/body.ts'
import type { Json } from '../../json/values.ts'
import { CommandError } from '../command.ts'
import type { Redaction } from './redaction.ts'

export interface BackendResponse {
  readonly status: number
  /** Undefined where the body is not JSON. */
  readonly body: Json
  readonly isJson: boolean
  readonly text: string
  readonly contentType: string
  /** `name=value` of each `Set-Cookie`. */
  readonly cookies: readonly string[]
}

/** The place of a token in a request: as `credential` of an upstream. */
export type TokenStyle = 'none' | 'bearer' | 'cookies' | `header:${string}`

export interface Credential {
  readonly style: TokenStyle
  readonly token?: string
  readonly cookies?: string
}

export interface BackendClient {
  readonly url: string
  /** @throws CommandError if the back-end does not answer */
  readonly get: (path: string, credential?: Credential) => Promise<BackendResponse>
  /** Only for sign-in and sign-out. @throws CommandError if the back-end does not answer */
  readonly post: (path: string, body: PostBody, credential?: Credential) => Promise<BackendResponse>
  /** Whether paths and names that are only likely may be tried. */
  readonly mayGuess: () => boolean
  /** How many requests may still be sent. */
  readonly remaining: () => number
}

interface PostBody {
  readonly format: 'json' | 'form'
  readonly members: Readonly<Record<string, unknown>>
}

const timeoutMs = 15_000
const maxBytes = 4 * 1024 * 1024
/** Bounded: `init` looks at a back-end, it does not crawl it. */
export const maxRequests = 400
/** The others are for the routes that were named, and for the sign-out. */
export const maxGuessing = 250

interface ClientOptions {
  readonly redaction: Redaction
  /** Headers of every request. */
  readonly fixed: Readonly<Record<string, string>>
}

/** @param base the URL of the back-end, whose path is put before each path */
export function createClient(base: string, { redaction, fixed }: ClientOptions): BackendClient {
  const url = base.endsWith('/') ? base.slice(0, -1) : base
  let requests = 0

  async function send(path: string, init: RequestInit, credential?: Credential) {
    if (++requests > maxRequests) {
      throw new CommandError(`init has sent ${maxRequests} requests to ${url} and stops here.`)
    }
    const headers = { accept: 'application/json', ...fixed, ...credentialHeaders(credential) }
    const response = await fetch(url + path, {
      ...init,
      headers: { ...headers, ...(init.headers as Record<string, string> | undefined) },
      // A redirect could take the password or token to another host.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs)
    }).catch((error: unknown) => {
      throw new CommandError(`${url} does not answer: ${reasonOf(error)}`)
    })
    return await readResponse(response)
  }

  async function readResponse(response: Response): Promise<BackendResponse> {
    const bytes = await collect(response).catch((error: unknown) => {
      throw new CommandError(`The response of ${url} broke off: ${reasonOf(error)}`)
    })
    const contentType = response.headers.get('content-type') ?? ''
    const cookies = response.headers.getSetCookie().map(cookie => cookie.split(';', 1)[0] ?? '')
    for (const cookie of cookies) {
      redaction.add(cookie.slice(cookie.indexOf('=') + 1), 'a cookie of the back-end')
    }
    const common = { status: response.status, contentType, cookies, text: bytes.toString('utf8') }
    try {
      // fetch has decoded the content coding.
      const body = readJson(bytes, { 'content-type': contentType }, maxBytes)
      return { ...common, body, isJson: true }
    } catch {
      return { ...common, body: undefined, isJson: false }
    }
  }

  return {
    url,
    mayGuess: () => requests < maxGuessing,
    remaining: () => maxRequests - requests,
    get: async (path, credential) => await send(path, {}, credential),
    post: async (path, { format, members }, credential) => {
      const isForm = format === 'form'
      const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json'
      const texts = Object.entries(members).map(([name, value]): [string, string] => [
        name,
        String(value)
      ])
      const body = isForm ? new URLSearchParams(texts).toString() : JSON.stringify(members)
      const init = { method: 'POST', headers: { 'content-type': type }, body }
      return await send(path, init, credential)
    }
  }
}

function credentialHeaders(credential?: Credential): Record<string, string> {
  const { style = 'none', token = '', cookies = '' } = credential ?? {}
  if (style === 'bearer') return { authorization: `Bearer ${token}` }
  if (style === 'cookies') return { cookie: cookies }
  return style === 'none' ? {} : { [style.slice('header:'.length)]: token }
}

async function collect(response: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    const bytes = chunk as Uint8Array
    size += bytes.length
    if (size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

function reasonOf(error: unknown): string {
  const { cause, message, name } = error as Error
  if (name === 'TimeoutError') return `no answer within ${timeoutMs / 1000} seconds`
  return cause instanceof Error ? cause.message : message
}

/** Whether the back-end answered with a success, as far as the status says. */
export function isOk({ status }: BackendResponse): boolean {
  return status >= 200 && status < 300
}
