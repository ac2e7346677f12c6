/** A back-end that streams without end, and clients that tell how a stream of theirs ended. */
import { type IncomingHttpHeaders, request, type ServerResponse } from 'node:http'
import { adopt } from '../../src/observability/emitters.ts'
import { testUpstream, type TestUpstream } from './upstream.ts'

type CleanUp = (undo: () => unknown) => void

export interface StreamingBackend extends TestUpstream {
  /** Responses under way. */
  readonly open: () => number
}

const tickMs = 20
const piece = Buffer.alloc(16 * 1024, 'x')

/** Paths with `events` answer events, those with `file` a file of 1 GiB, others a few bytes. */
export async function streamingBackend(cleanUp: CleanUp): Promise<StreamingBackend> {
  let open = 0
  const begin = (response: ServerResponse, type: string, more: object = {}) => {
    open++
    response.on('close', () => open--)
    response.writeHead(200, { 'content-type': type, ...more })
  }
  const tick = (response: ServerResponse, chunk: string | Buffer) => {
    response.write(chunk)
    const timer = setInterval(() => {
      if (response.writableNeedDrain) return
      response.write(chunk)
    }, tickMs)
    response.on('close', () => clearInterval(timer))
  }
  const backend = await testUpstream(cleanUp, ({ url = '' }, response) => {
    if (url.includes('partial')) {
      begin(response, 'text/event-stream')
      response.write('data: whole\n\ndata: begun')
    } else if (url.includes('events')) {
      begin(response, 'text/event-stream')
      tick(response, 'data: tick\n\n')
    } else if (url.includes('file')) {
      begin(response, 'application/zip', { 'content-length': 2 ** 30 })
      for (let n = 0; n < 5; n++) response.write(piece)
      tick(response, piece)
    } else response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":1}')
  })
  return { ...backend, open: () => open }
}

export interface StreamClient {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: () => string
  readonly bytes: () => number
  readonly isOver: () => boolean
  /** `whole` where it ended as HTTP wants it; when, by `performance.now()`. */
  readonly ended: Promise<{ readonly how: 'whole' | 'cut'; readonly at: number }>
  readonly leave: () => void
}

export interface StreamOptions {
  readonly cookie?: string | undefined
  readonly headers?: Record<string, string>
  readonly method?: string
  readonly body?: string
}

/** Resolves with the headers of the response. */
export async function openStream(
  cleanUp: CleanUp,
  url: string,
  { cookie, headers = {}, method = 'GET', body }: StreamOptions = {}
): Promise<StreamClient> {
  return await new Promise((resolve, reject) => {
    const asked = request(url, {
      agent: false,
      method,
      headers: { ...(cookie !== undefined && { cookie }), ...headers }
    })
    cleanUp(() => asked.destroy())
    asked.on('error', reject)
    asked.on('response', response => {
      let text = ''
      let bytes = 0
      let isOver = false
      const ended = new Promise<{ how: 'whole' | 'cut'; at: number }>(end =>
        adopt(response)
          .on('data', (chunk: Buffer) => {
            bytes += chunk.length
            if (bytes < 100_000) text += chunk.toString('latin1')
          })
          .on('close', () => {
            isOver = true
            end({ how: response.complete ? 'whole' : 'cut', at: performance.now() })
          })
      )
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        text: () => text,
        bytes: () => bytes,
        isOver: () => isOver,
        ended,
        leave: () => asked.destroy()
      })
    })
    asked.end(body)
  })
}
