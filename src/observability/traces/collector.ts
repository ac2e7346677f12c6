/** One request to an OTLP collector, over a connection that is kept. */
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { adopt } from '../emitters.ts'
import { readPartialSuccess } from './partial-success.ts'
import type { ExportSettings } from './settings.ts'

export interface CollectorResponse {
  /** 0 where there was none. */
  readonly status: number
  /** Spans that it did not take, of a batch that it took. */
  readonly rejected: number
  readonly reason: string
  readonly retryAfterMs?: number
}

export interface Collector {
  /** Never fails: an error is a response without a status. */
  readonly send: (body: Buffer, signal: AbortSignal) => Promise<CollectorResponse>
  readonly close: () => void
}

const contentTypes = { protobuf: 'application/x-protobuf', json: 'application/json' } as const
/** Of a response; the rest is of no use. */
const maxBytes = 64 * 1024

export function createCollector(settings: ExportSettings, version: string): Collector {
  const { url, encoding, isCompressed, headers, tls, timeoutMs } = settings
  const { Agent, request } = url.protocol === 'https:' ? https : http
  const agent = adopt(new Agent({ keepAlive: true, maxSockets: 1, ...tls }))
  const allHeaders = {
    'user-agent': `console-gateway/${version}`,
    ...headers,
    'content-type': contentTypes[encoding],
    ...(isCompressed && { 'content-encoding': 'gzip' })
  }
  return {
    send: (body, signal) =>
      new Promise(resolve => {
        const fail = (reason: string) => resolve({ status: 0, rejected: 0, reason })
        // An abort that has been is no event any more: nothing would end the request.
        if (signal.aborted) return fail('the gateway stops')
        const options = {
          method: 'POST',
          agent,
          headers: { ...allHeaders, 'content-length': body.length }
        }
        let hasResponse = false
        const sent = adopt(request(url, options), error => fail(reasonOf(error)))
        const timer = setTimeout(() => {
          fail(`no response within ${timeoutMs} ms`)
          sent.destroy()
        }, timeoutMs)
        const leave = () => sent.destroy()
        signal.addEventListener('abort', leave, { once: true })
        sent.on('close', () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', leave)
          if (!hasResponse) fail('the connection was closed')
        })
        sent.on('response', response => {
          hasResponse = true
          void readResponse(response, encoding).then(resolve)
        })
        sent.end(body)
      }),
    close: () => agent.destroy()
  }
}

async function readResponse(
  response: IncomingMessage,
  encoding: ExportSettings['encoding']
): Promise<CollectorResponse> {
  const { statusCode: status = 0, headers } = response
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of adopt(response) as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > maxBytes) break
      pieces.push(piece)
    }
  } catch {
    // The status has come, and with it whether the batch was taken.
  }
  const isTaken = status >= 200 && status < 300
  const partial = isTaken ? readPartialSuccess(Buffer.concat(pieces), encoding) : undefined
  const retryAfterMs = retryMsOf(headers['retry-after'])
  return {
    status,
    rejected: partial?.rejected ?? 0,
    reason: partial?.message ?? `status ${status}`,
    ...(retryAfterMs !== undefined && { retryAfterMs })
  }
}

/** RFC 9110 §10.2.3: seconds or a date. */
function retryMsOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined
  const ms = /^\d{1,6}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

/** Without an address of the network. */
function reasonOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message
}
