/** One request on a connection of its own, which is closed after it; also such as no browser sends. */
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text as textOf } from 'node:stream/consumers'

export interface Call {
  readonly method?: string
  /** In place of that of the address, as it is. */
  readonly path?: string
  /** Those that are undefined are left out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Sent by POST. */
  readonly json?: unknown
  readonly body?: string
  readonly timeoutMs?: number
  /** Another one of loopback than 127.0.0.1. */
  readonly localAddress?: string
}

export type Answer = Awaited<ReturnType<typeof callOnce>>

export async function callOnce(url: string, options: Call = {}) {
  const { json, headers = {}, timeoutMs = 15_000, path, localAddress } = options
  const { body = json === undefined ? undefined : JSON.stringify(json) } = options
  const sent = { ...(json !== undefined && { 'content-type': 'application/json' }), ...headers }
  const present = Object.entries(sent).filter(([, value]) => value !== undefined)
  const send = url.startsWith('https:') ? httpsRequest : httpRequest
  const asked = send(url, {
    method: options.method ?? (body === undefined ? 'GET' : 'POST'),
    ...(path !== undefined && { path }),
    ...(localAddress !== undefined && { localAddress }),
    headers: Object.fromEntries(present),
    agent: false,
    rejectUnauthorized: false,
    signal: AbortSignal.timeout(timeoutMs)
  })
  asked.end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  const text = await textOf(response)
  // What a client would read; tests name the members they expect.
  let parsed: any
  try {
    parsed = JSON.parse(text)
  } catch {}
  return { status: response.statusCode ?? 0, headers: response.headers, text, json: parsed }
}
