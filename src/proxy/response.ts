/**
 * An upstream's response on its way in: small bodies collected, large ones streamed (the plumbing
 * between streams is a proxy's largest cost).
 */
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../errors.ts'
import { adopt } from '../observability/emitters.ts'

/** One proxied request: state that its route and its upstream share. */
export interface Exchange {
  /** To the first byte of the answer. */
  readonly timeoutMs: number
  /** Bodies up to so many bytes are collected, in both directions. */
  readonly collectBytes: number
  /** Whether only a whole answer is of use (shaping): then a slow one is waited for. */
  readonly collectOnly: boolean
  /** Whether the answer has no body whatever its fields say (RFC 9110 §9.3.2). */
  readonly isHead: boolean
  /** When it was sent; of one that waits for a connection, when it got one. */
  startedAt: number
  /** The response is of no use any more: the client has left, or an error was sent. */
  isGone: boolean
  /** Milliseconds to the first byte of the answer. */
  firstByteMs?: number | undefined
  /** The attempt that runs, or the last one; or the wait for a connection. */
  attempt?: { readonly fail: (error: unknown) => void } | undefined
}

/** A whole body in memory; stands where the proxy plugin expects a stream. */
export class CollectedBody {
  readonly bytes: Buffer
  constructor(bytes: Buffer) {
    this.bytes = bytes
  }
  /** The plugin destroys the bodies of clients who left. */
  destroy(): void {}
}

export interface UpstreamResponse {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: CollectedBody | Readable
}

/** Callbacks of an attempt. */
export interface Watcher {
  readonly onResponse: (response: UpstreamResponse) => void
  /**
   * It failed before there was an answer.
   * @param isFree whether the upstream connection is free; if not, `onSettled` follows
   */
  readonly onFailed: (error: unknown, isFree: boolean) => void
  /** The upstream connection is free again. */
  readonly onSettled: () => void
}

/** A body of unknown length is streamed after this wait: events and logs must not wait for their end. */
const gatherMs = 5

/** Pieces that are joined into one: a body in chunks of a byte would cost its size a hundred times. */
const piecesMax = 256

export const gone = () =>
  new GatewayError('request.malformed', { cause: new Error('the client left') })

/** Ends an exchange, as if the client had left or for another reason. One that waits leaves. */
export function abort({ attempt }: Exchange, reason: GatewayError = gone()): void {
  attempt?.fail(reason)
}

const noBytes = Buffer.alloc(0)

/**
 * undici's callbacks of one attempt. A class: a closure for each of them would cost more than all
 * that they do.
 */
export class Attempt implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange
  readonly #stallMs: number
  readonly #watcher: Watcher
  #controller: Dispatcher.DispatchController | undefined
  #timer: NodeJS.Timeout | undefined
  #state: 'waiting' | 'collecting' | 'answered' | 'over' = 'waiting'
  #status = 0
  #headers: UpstreamResponse['headers'] = {}
  /** Most bodies are one piece. */
  #first: Buffer | undefined
  #more: Buffer[] | undefined
  #whole: Buffer[] | undefined
  #collected = 0
  #stream: Readable | undefined

  constructor(exchange: Exchange, stallMs: number, watcher: Watcher) {
    this.#exchange = exchange
    this.#stallMs = stallMs
    this.#watcher = watcher
    this.#timer = setTimeout(expire, exchange.timeoutMs, this)
    exchange.attempt = this
  }

  /** @param isFree whether undici is done with it, though it never began */
  fail(error: unknown, isFree: boolean = this.#controller !== undefined): void {
    clearTimeout(this.#timer)
    if (this.#state === 'over') return
    const hadAnswer = this.#state === 'answered'
    this.#state = 'over'
    const reason = error instanceof Error ? error : new Error(String(error))
    if (this.#controller?.aborted === false) this.#controller.abort(reason)
    if (!hadAnswer) return this.#watcher.onFailed(error, isFree)
    this.#watcher.onSettled()
    this.#stream?.destroy(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#state !== 'over') return
    // It failed while undici was still connecting: only now undici lets go of it.
    controller.abort(gone())
    this.#watcher.onSettled()
  }

  onResponseStart(
    _controller: unknown,
    status: number,
    headers: UpstreamResponse['headers']
  ): void {
    if (status < 200 || this.#state !== 'waiting') return
    clearTimeout(this.#timer)
    const exchange = this.#exchange
    exchange.firstByteMs = performance.now() - exchange.startedAt
    if (status > 599) {
      return this.fail(
        new GatewayError('upstream.invalid', { cause: new Error(`status ${status}`) })
      )
    }
    const coding = headers['transfer-encoding']
    // The field ends here, so nobody behind us could undo another coding.
    if (coding !== undefined && String(coding).toLowerCase() !== 'chunked') {
      return this.fail(
        new GatewayError('upstream.invalid', {
          cause: new Error('a transfer coding other than chunked')
        })
      )
    }
    this.#status = status
    this.#headers = headers
    this.#state = 'collecting'
    if (exchange.isHead || status === 204 || status === 205 || status === 304) return
    const length = headers['content-length']
    if (length !== undefined ? Number(length) > exchange.collectBytes : isEventStream(headers)) {
      this.startStream()
    }
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    if (this.#state === 'answered') return this.#push(chunk)
    if (this.#state !== 'collecting') return
    this.#collected += chunk.length
    if (this.#first === undefined) this.#first = chunk
    else this.#add(chunk)
    const { collectBytes, collectOnly } = this.#exchange
    if (this.#collected > collectBytes) this.startStream()
    else if (
      this.#first === chunk &&
      !collectOnly &&
      this.#headers['content-length'] === undefined
    ) {
      this.#timer = setTimeout(streamAfterAll, gatherMs, this)
    }
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer)
    if (this.#state === 'over') return
    const wasCollecting = this.#state === 'collecting'
    this.#state = 'over'
    this.#watcher.onSettled()
    if (!wasCollecting) this.#stream?.push(null)
    else {
      this.#watcher.onResponse({
        status: this.#status,
        headers: this.#headers,
        body: new CollectedBody(this.#bytes())
      })
    }
  }

  onResponseError(_controller: unknown, error: unknown): void {
    if (this.#state === 'over') this.#watcher.onSettled()
    else this.fail(error, true)
  }

  #add(chunk: Buffer): void {
    this.#more ??= []
    this.#more.push(chunk)
    if (this.#more.length < piecesMax) return
    this.#whole ??= []
    this.#whole.push(Buffer.concat(this.#more))
    this.#more = []
  }

  #bytes(): Buffer {
    const first = this.#first ?? noBytes
    return this.#more === undefined
      ? first
      : Buffer.concat([first, ...(this.#whole ?? []), ...this.#more])
  }

  /** Collects no more: what is there and what comes goes through a stream. */
  startStream(): void {
    clearTimeout(this.#timer)
    this.#state = 'answered'
    const body = adopt(
      new Readable({
        highWaterMark: 64 * 1024,
        read: () => {
          clearTimeout(this.#timer)
          this.#controller?.resume()
        },
        destroy: (error, done) => {
          if (this.#state !== 'over') this.fail(error ?? gone())
          done(error)
        }
      })
    )
    this.#stream = body
    if (this.#first !== undefined) this.#push(this.#bytes())
    this.#first = this.#more = this.#whole = undefined
    this.#watcher.onResponse({ status: this.#status, headers: this.#headers, body })
  }

  #push(chunk: Buffer): void {
    if (this.#stream?.push(chunk) !== false) return
    this.#controller?.pause()
    // A reader that stands still must not keep a connection that others need.
    clearTimeout(this.#timer)
    this.#timer = setTimeout(standStill, this.#stallMs, this)
  }
}

function expire(attempt: Attempt) {
  return attempt.fail(new GatewayError('upstream.timeout'))
}
function standStill(attempt: Attempt) {
  return attempt.fail(
    new GatewayError('upstream.timeout', { cause: new Error('the client reads too slowly') })
  )
}
function streamAfterAll(attempt: Attempt) {
  return attempt.startStream()
}

/** Without end, and each event is wanted at once. */
export function isEventStream(headers: UpstreamResponse['headers']): boolean {
  return /^text\/event-stream/i.test(String(headers['content-type'] ?? ''))
}
