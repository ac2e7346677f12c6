/**
 * Sends spans to an OTLP collector over HTTP, in batches. Whatever the collector does, requests
 * never wait for it, memory is bounded, and what is lost is counted.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Metrics } from '../metrics.ts'
import { type CollectorResponse, createCollector } from './collector.ts'
import { writeJson } from './otlp-json.ts'
import { type Origin, writeProtobuf } from './otlp-protobuf.ts'
import type { ExportSettings } from './settings.ts'
import { countSpans, type EndedRequest, spansOf } from './spans.ts'

export interface Exporter {
  /** Takes the spans of a request, unless the queue is full. */
  readonly add: (request: EndedRequest) => void
  /** Sends what waits, within the time; the rest is dropped. */
  readonly close: (withinMs: number) => Promise<void>
}

interface Log {
  readonly info: (fields: object, message: string) => void
  readonly warn: (fields: object, message: string) => void
}

export interface ExporterOptions {
  readonly settings: ExportSettings
  readonly version: string
  /** Whether sessions and limits are asked of Redis. */
  readonly hasRedis: boolean
  readonly metrics: Metrics
  readonly log: Log
}

type DropReason = 'queue' | 'refused' | 'unreachable' | 'stop' | 'fault'

/** OTLP: the only statuses after which a batch is sent again. */
const retryStatuses = new Set([429, 502, 503, 504])
const firstPauseMs = 1000
const maxPauseMs = 30_000
/** A collector that asks for more is asked again all the same. */
const maxRetryAfterMs = 600_000
const compress = promisify(gzip)

export function createExporter(options: ExporterOptions): Exporter {
  return new BatchExporter(options)
}

class BatchExporter implements Exporter {
  readonly #settings: ExportSettings
  readonly #hasRedis: boolean
  readonly #origin: Origin
  readonly #collector: ReturnType<typeof createCollector>
  readonly #log: Log
  readonly #exported: (spans: number) => void
  readonly #dropped: (reason: DropReason, spans: number) => void
  #queue: EndedRequest[] = []
  /** In spans. */
  #queued = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #isFailing = false
  /** When the collector may be asked again, as of `performance.now()`. */
  #notBefore = 0
  #lost = 0
  /** Ends the pause before a retry: the last one is made at once. */
  readonly #closing = new AbortController()
  /** Ends the last requests. */
  readonly #end = new AbortController()

  constructor({ settings, version, hasRedis, metrics, log }: ExporterOptions) {
    this.#settings = settings
    this.#hasRedis = hasRedis
    this.#origin = {
      resource: settings.resource,
      scope: { name: 'console-gateway', version }
    }
    this.#collector = createCollector(settings, version)
    this.#log = log
    const { exported, dropped } = countersOf(metrics, () => this.#queued)
    this.#exported = exported
    this.#dropped = dropped
  }

  add(request: EndedRequest): void {
    const spans = countSpans(request)
    if (this.#isClosing || this.#queued + spans > this.#settings.maxQueue) {
      return this.#drop('queue', spans)
    }
    this.#queue.push(request)
    this.#queued += spans
    if (this.#queued >= this.#settings.maxBatch) this.#start()
    else this.#timer ??= setTimeout(() => this.#start(), this.#settings.delayMs).unref()
  }

  async close(withinMs: number): Promise<void> {
    this.#closing.abort()
    const timer = setTimeout(() => this.#end.abort(), withinMs)
    this.#start()
    await this.#sending
    clearTimeout(timer)
    this.#drop('stop', this.#queued)
    this.#collector.close()
  }

  #start(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
  }

  /** Until less than a batch waits; at the end, until nothing does. */
  async #sendAll(): Promise<void> {
    do {
      const batch = this.#takeBatch()
      if (batch.length > 0) await this.#send(batch).catch(error => this.#onFault(error, batch))
      if (this.#end.signal.aborted) return
    } while (this.#queued >= (this.#isClosing ? 1 : this.#settings.maxBatch))
    if (this.#queued > 0) {
      this.#timer ??= setTimeout(() => this.#start(), this.#settings.delayMs).unref()
    }
  }

  /** A fault of ours costs a batch, not the process. The first of several in a row is told. */
  #onFault(err: unknown, batch: readonly EndedRequest[]): void {
    this.#drop('fault', spanCount(batch))
    if (this.#isFailing) return
    this.#isFailing = true
    this.#log.warn({ event: 'traces.fault', err }, 'spans cannot be sent, and are dropped')
  }

  #takeBatch(): EndedRequest[] {
    let spans = 0
    let count = 0
    while (count < this.#queue.length) {
      spans += countSpans(this.#queue[count] as EndedRequest)
      if (count > 0 && spans > this.#settings.maxBatch) break
      count++
    }
    const batch = this.#queue.splice(0, count)
    this.#queued = spanCount(this.#queue)
    return batch
  }

  async #send(batch: readonly EndedRequest[]): Promise<void> {
    const spans = batch.flatMap(request => spansOf(request, this.#hasRedis))
    const write = this.#settings.encoding === 'json' ? writeJson : writeProtobuf
    const plain = write(this.#origin, spans)
    const body = this.#settings.isCompressed ? await compress(plain) : plain
    const until = performance.now() + this.#settings.batchTimeoutMs
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(maxPauseMs, pauseMs * 2)) {
      await this.#pause(this.#notBefore - performance.now())
      const wasClosing = this.#isClosing
      const response = await this.#collector.send(body, this.#end.signal)
      const isTaken = response.status >= 200 && response.status < 300
      if (isTaken) return this.#succeed(response, spans.length)
      this.#fail(response)
      const mayRetry = response.status === 0 || retryStatuses.has(response.status)
      if (!mayRetry) return this.#drop('refused', spans.length)
      if (wasClosing) return this.#drop('stop', spans.length)
      // A random share, so that many gateways do not come back at once.
      const waitMs = response.retryAfterMs ?? pauseMs * (0.5 + Math.random() / 2)
      this.#notBefore = performance.now() + Math.min(waitMs, maxRetryAfterMs)
      if (this.#notBefore > until) return this.#drop('unreachable', spans.length)
    }
  }

  async #pause(ms: number): Promise<void> {
    if (ms <= 0) return
    const { signal } = this.#closing
    await wait(ms, undefined, { signal, ref: false }).catch(() => {})
  }

  get #isClosing(): boolean {
    return this.#closing.signal.aborted
  }

  #drop(reason: DropReason, spans: number): void {
    if (spans === 0) return
    this.#lost += spans
    this.#dropped(reason, spans)
  }

  #fail({ reason }: CollectorResponse): void {
    if (this.#isFailing) return
    this.#isFailing = true
    this.#log.warn(
      { event: 'traces.failing', collector: this.#settings.url.origin, reason },
      'the collector takes no traces; requests go on, and spans beyond the queue are dropped'
    )
  }

  #succeed({ rejected, reason }: CollectorResponse, spans: number): void {
    this.#exported(spans - rejected)
    if (rejected > 0) this.#drop('refused', rejected)
    if (rejected > 0 && !this.#isFailing) return this.#fail({ status: 200, rejected, reason })
    if (!this.#isFailing || rejected > 0) return
    this.#isFailing = false
    this.#log.info(
      { event: 'traces.ok', collector: this.#settings.url.origin, dropped: this.#lost },
      'the collector takes traces again'
    )
    this.#lost = 0
  }
}

function spanCount(requests: readonly EndedRequest[]): number {
  return requests.reduce((sum, request) => sum + countSpans(request), 0)
}

function countersOf(metrics: Metrics, queued: () => number) {
  const exported = metrics.counter(
    'console_gateway_trace_spans_exported_total',
    'Spans that the collector has taken.'
  )
  const dropped = metrics.counter(
    'console_gateway_trace_spans_dropped_total',
    'Spans that were lost, by reason: a full queue, a collector that refused them or was not ' +
      'reached in time, a fault of the gateway, or its stop.',
    ['reason']
  )
  metrics.read({
    name: 'console_gateway_trace_spans_queued',
    help: 'Spans that wait for the next batch.',
    read: () => [[[], queued()]]
  })
  return {
    exported: (spans: number) => exported.inc(spans),
    dropped: (reason: string, spans: number) => dropped.labels(reason).inc(spans)
  }
}
