/** The only sockets to back-ends: pools, time-outs, one retry of safe requests, and the names of failures. */
import { Readable } from 'node:stream'
import { Pool, type Dispatcher } from 'undici'
import type { UpstreamConfig } from '../config/routes.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { createAnswer, gone, type Answered, type Exchange } from './answer.ts'
import { upstreamError } from './failures.ts'
import { readSmallBody, countedBody } from './request-body.ts'

/** Where the proxy plugin's header object carries the exchange from the route to the dispatcher. */
export const exchangeKey = Symbol('exchange')

export interface SendOptions {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[]>
  readonly body?: string
  /** To the first byte. */
  readonly timeoutMs: number
  /** To the last byte; without it only a body that stalls ends. */
  readonly totalMs?: number
  readonly maxBytes: number
  /** The code for a larger answer; `upstream.invalid` without it. */
  readonly tooLarge?: ErrorCode
  /** Ends it where nobody waits for the answer any more. */
  readonly signal?: AbortSignal
}

export interface Sent {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

type RequestOptions = Omit<Dispatcher.DispatchOptions, 'headers'> & { headers: Record<PropertyKey, unknown> }
type RequestCallback = (error: null, answer: { statusCode: number, headers: Answered['headers'], body: Answered['body'] | FailedBody }) => void

/** Stands in the place of a body where there is no answer. Told as an error, the plugin would log it too, and wrap it. */
export class FailedBody {
  readonly error: GatewayError
  constructor (error: GatewayError) { this.error = error }
  destroy (): void {}
}

export type UpstreamPool = ReturnType<typeof createUpstream>
/** What routes and sign-in need of a back-end. */
export type Upstream = Pick<UpstreamPool, 'config' | 'origin' | 'base' | 'ask' | 'request' | 'send'>

/** A retry costs one, a request earns a tenth: at most 10 % more load on a back-end that is in trouble. */
const retryBudget = 10

/**
 * One back-end. Outlives the routes that use it; whoever made it closes it.
 * @param authority the PEM text of `config.ca`
 */
export function createUpstream (config: UpstreamConfig, authority?: string) {
  const { origin, pathname } = new URL(config.url)
  const pool = new Pool(origin, {
    connections: config.connections,
    pipelining: 1,
    keepAliveTimeout: 4000,
    keepAliveMaxTimeout: 60_000,
    // The first byte has a clock of its own below: undici's is only exact to a second.
    headersTimeout: 0,
    bodyTimeout: config.idleTimeout,
    maxHeaderSize: 16 * 1024,
    allowH2: false,
    connect: { timeout: config.connectTimeout, rejectUnauthorized: true, ...(authority !== undefined && { ca: authority }) }
  })
  let inFlight = 0
  let budget = retryBudget

  /**
   * Sends a request and gives one answer to `done`: an error of ours, or the answer as soon as it may go on.
   * A safe request whose connection broke before an answer is sent once more; nothing else ever is.
   */
  function ask (options: Omit<Dispatcher.DispatchOptions, 'body'> & { readonly body?: Dispatcher.DispatchOptions['body'] }, exchange: Exchange, done: (error: GatewayError | null, answer?: Answered) => void): void {
    if (exchange.isGone) return done(gone())
    if (inFlight >= config.connections + config.queue) return done(new GatewayError('overloaded', { retryAfter: 1 }))
    inFlight++
    budget = Math.min(retryBudget, budget + 0.1)
    const isSafe = (options.method === 'GET' || options.method === 'HEAD') && options.body == null
    // `reset: false`: undici would close the connection after each HEAD.
    const asked = { ...options, body: options.body ?? null, reset: false }
    const attempt = (retriesLeft: number) => pool.dispatch(asked, createAnswer(exchange, config.idleTimeout, {
      onAnswer: answer => done(null, answer),
      onFailed: error => {
        const failure = upstreamError(error)
        if (retriesLeft > 0 && budget >= 1 && !exchange.isGone && (failure.code === 'upstream.reset' || failure.code === 'upstream.refused')) {
          budget -= 1
          return attempt(retriesLeft - 1)
        }
        settle()
        done(failure)
      },
      onSettled: () => settle()
    }))
    let settled = false
    const settle = () => {
      if (!settled) inFlight--
      settled = true
    }
    try {
      attempt(isSafe ? 1 : 0)
    } catch (error) {
      settle()
      done(upstreamError(error))
    }
  }

  /** What the proxy plugin calls in the place of undici's own `request`. */
  function request (options: RequestOptions, callback: RequestCallback): void {
    const { [exchangeKey]: exchange, connection: _connection, 'transfer-encoding': _encoding, ...headers } = options.headers as Record<PropertyKey, unknown> & { [exchangeKey]: Exchange }
    const failed = (error: GatewayError) => callback(null, { statusCode: error.status, headers: {}, body: new FailedBody(error) })
    const forward = (body: Dispatcher.DispatchOptions['body']) => {
      ask({ method: options.method, path: options.path, headers: headers as Record<string, string>, body: body ?? null }, exchange, (error, answer) => {
        if (answer === undefined) failed(error ?? new GatewayError('upstream.invalid'))
        else callback(null, { statusCode: answer.status, headers: answer.headers, body: answer.body })
      })
    }
    const { body } = options
    if (!(body instanceof Readable)) return forward(typeof body === 'string' && body !== '' ? body : null)
    const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length'])
    if (length !== undefined && length <= exchange.collectBytes) readSmallBody(body, length, (error, bytes) => bytes === undefined ? failed(error ?? new GatewayError('request.malformed')) : forward(bytes))
    else forward(length === undefined ? countedBody(body, exchange.maxBodyBytes) : body)
  }

  /**
   * A request of the gateway's own, its answer collected.
   * @throws GatewayError `upstream.*`, or `overloaded`
   */
  async function send ({ method, path, headers, body, timeoutMs, totalMs, maxBytes, tooLarge = 'upstream.invalid', signal }: SendOptions): Promise<Sent> {
    const exchange: Exchange = { timeoutMs, collectBytes: maxBytes, collectOnly: true, maxBodyBytes: 0, isHead: false, startedAt: performance.now(), isGone: signal?.aborted === true }
    const leave = () => {
      exchange.isGone = true
      exchange.abort?.()
    }
    const timer = totalMs === undefined ? undefined : setTimeout(() => exchange.abort?.(new GatewayError('upstream.timeout')), totalMs)
    signal?.addEventListener('abort', leave, { once: true })
    try {
      return await new Promise((answered, failed) => {
        ask({ method, path: (pathname === '/' ? '' : pathname.replace(/\/$/, '')) + path, headers, body: body ?? null }, exchange, (error, answer) => {
          if (answer === undefined) return failed(error ?? new GatewayError('upstream.invalid'))
          if (answer.body instanceof Readable) {
            answer.body.destroy()
            return failed(new GatewayError(tooLarge, { cause: new Error(`the answer is larger than ${maxBytes} bytes`) }))
          }
          answered({ status: answer.status, headers: answer.headers, body: answer.body.bytes })
        })
      })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', leave)
    }
  }

  return {
    /** Scheme, host and port. */
    origin,
    /** What stands before every upstream path, without a slash at its end. */
    base: pathname.replace(/\/$/, ''),
    config,
    ask,
    request,
    send,
    inFlight: () => inFlight,
    /** Ends what is running. */
    close: async () => { await pool.destroy() },
    /** Lets what is running finish. */
    retire: async () => { await pool.close() }
  }
}
