/** The state of a proxied request, which its stages read and write. */
import type { BodyMapping } from '../../proxy/body-mapping.ts'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { abort, type Exchange, type UpstreamResponse } from '../../proxy/response.ts'
import type { Trail } from '../../observability/trail.ts'
import type { TimeOuts } from '../../proxy/time-outs.ts'
import type { PartResults } from '../../proxy/merge-parts.ts'

export interface ExchangeOptions {
  readonly timeoutMs: number
  readonly timeOuts: TimeOuts
  readonly collectBytes: number
  readonly collectOnly: boolean
  readonly maxBodyBytes: number
  /** Whether a POST becomes GET. */
  readonly isReadOnly?: boolean
  readonly bodyMapping?: BodyMapping | undefined
}

type Headers = Record<string, string | string[]>

const noHeaders: Headers = {}

/** One object for request, wait and response: each further one would cost every request. */
export class ProxiedExchange implements Exchange {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly trail: Trail
  readonly method: string
  readonly timeoutMs: number
  readonly timeOuts: TimeOuts
  readonly collectBytes: number
  readonly collectOnly: boolean
  /** Bound of the client's body. */
  readonly maxBodyBytes: number
  readonly bodyMapping: BodyMapping | undefined
  readonly isHead: boolean
  startedAt = performance.now()
  isGone: boolean
  firstByteMs: number | undefined = undefined
  upload: { readonly received: number } | undefined = undefined
  cutCode: Exchange['cutCode'] = undefined
  attempt: Exchange['attempt'] = undefined
  trailers: Exchange['trailers'] = undefined
  /** At the upstream, with the query. */
  path = ''
  /** For the upstream. */
  headers = noHeaders
  body: Buffer | Readable | string | null = null
  /** Of the response, where the route has any. */
  pendingParts: Promise<PartResults> | undefined = undefined
  /** Set by the adapter of the proxy plugin, which gives its routes another form of it. */
  response: UpstreamResponse | undefined = undefined
  /** The upstream's headers for the client. */
  responseHeaders: Headers | undefined = undefined
  /** Whether the proxy plugin has put the upstream's headers into the reply. */
  areHeadersCopied = false

  constructor(request: FastifyRequest, reply: FastifyReply, options: ExchangeOptions) {
    this.request = request
    this.reply = reply
    this.trail = request.trail
    this.method = options.isReadOnly === true && request.method === 'POST' ? 'GET' : request.method
    this.timeoutMs = options.timeoutMs
    this.timeOuts = options.timeOuts
    this.collectBytes = options.collectBytes
    this.collectOnly = options.collectOnly
    this.maxBodyBytes = options.maxBodyBytes
    this.bodyMapping = options.bodyMapping
    this.isHead = request.method === 'HEAD'
    this.isGone = reply.raw.closed
    request.exchange = this
    // Fastify's own signal fires as soon as the body of a POST is read, so it cannot be used.
    request.onResponseClose.push(() => {
      if (!reply.raw.writableFinished) this.leave()
    })
  }

  /** Nobody reads the response any more: ends the upstream's work on it. */
  leave(): void {
    this.isGone = true
    abort(this)
  }
}
