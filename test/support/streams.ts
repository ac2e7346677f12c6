/** A back-end that streams without end, and clients that tell how a stream of theirs ended. */
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { adopt } from '../../src/observability/emitters.ts'
import { testUpstream } from './upstream.ts'

type CleanUp = (undo: () => unknown) => void

const tickMs = 20
const piece = Buffer.alloc(16 * 1024, 'x')

/** Paths with `events` answer events, those with `file` a file of 1 GiB, others a few bytes. */
export async function streamingBackend(cleanUp: CleanUp) {
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
    if (url.includes('events')) {
      begin(response, 'text/event-stream')
      tick(response, 'data: tick\n\n')
    } else if (url.includes('file')) {
      begin(response, 'application/zip', { 'content-length': 2 ** 30 })
      for (let n = 0; n < 5; n++) response.write(piece)
      tick(response, piece)
    } else response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":1}')
  })
  /** Responses under way. */
  return { ...backend, open: () => open }
}

export type StreamClient = Awaited<ReturnType<typeof openStream>>

interface StreamOptions {
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
) {
  const asked = request(url, {
    agent: false,
    method,
    headers: { ...(cookie !== undefined && { cookie }), ...headers }
  })
  cleanUp(() => asked.destroy())
  asked.end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  asked.on('error', () => {})
  let text = ''
  let bytes = 0
  let isOver = false
  type End = { readonly how: 'whole' | 'cut'; readonly at: number }
  const ended = Promise.withResolvers<End>()
  adopt(response)
    .on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes < 100_000) text += chunk.toString('latin1')
    })
    .on('close', () => {
      isOver = true
      ended.resolve({ how: response.complete ? 'whole' : 'cut', at: performance.now() })
    })
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: () => text,
    bytes: () => bytes,
    isOver: () => isOver,
    /** `whole` where it ended as HTTP wants it; when, by `performance.now()`. */
    ended: ended.promise,
    leave: () => void asked.destroy()
  }
}
