/**
 * Decides for each route which bodies are long, and has a thread shape them: requests of others do
 * not wait for them.
 */
import type { Config } from '../config/schema/config.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import type { RouteConfig } from '../config/schema/routes.ts'
import { routeHasExpression } from '../config/schema/shape-steps.ts'
import type { ContractRules } from '../contract/contract.ts'
import { reportFindings } from '../contract/findings.ts'
import { GatewayError } from '../errors.ts'
import { unpackedLength } from '../json/coding.ts'
import type { Counter, Family } from '../observability/metrics.ts'
import type { JsonSource, PartResponse } from '../proxy/merge-parts.ts'
import type { GatheredParts, Parts } from '../proxy/parts.ts'
import type { Lost } from '../shaping/thread-runner.ts'
import type { Shaping, ShapingApart } from './endpoints/shaped.ts'
import type { GenerationServices } from './generation-services.ts'
import { minBytes, ShapingCost } from './shaping-cost.ts'
import { stallsOf } from '../observability/shaping-stalls.ts'
import { bytesOf, type ShapingPlan, type ShapingTask, type TaskSource } from './shaping-task.ts'
import {
  type ShapingPlans,
  ShapingThreads,
  type ThreadResult,
  threadsFor
} from './shaping-threads.ts'

interface LongRoute {
  readonly name: string
  readonly route: RouteConfig
  /** Of its envelope. */
  readonly dialect: GatewayConfig['envelope']['dialect']
  readonly maxShaped: number
  readonly contract: ContractRules | undefined
  /** Whether others read the upstream's bytes too. */
  readonly isCopied: boolean
  /** Of the route, compiled. */
  readonly parts: Parts | undefined
  /** Called with a path that the shape's `unwrap` does not find. */
  readonly onMissing: (path: string) => void
}

type Services = Pick<GenerationServices, 'metrics' | 'drift'>

/** The long bodies of one generation. */
export class LongBodies {
  readonly #services: Services
  readonly #threadCount: number
  readonly #envelope: GatewayConfig['envelope']
  readonly #plans: { routes: Record<string, ShapingPlan>; shapes: ShapingPlans['shapes'] }
  readonly #answers: Family<Counter>
  #threads: ShapingThreads | undefined

  constructor({ gateway, routes }: Config, services: Services) {
    this.#services = services
    this.#threadCount = threadsFor(gateway.server.shapingThreads)
    this.#envelope = gateway.envelope
    this.#plans = { routes: {}, shapes: routes.shapes }
    this.#answers = services.metrics.counter(
      'console_gateway_shaping_thread_answers_total',
      'Long answers by route: "shaped" in a thread, "full": shaped without one since too many ' +
        'waited or a thread had failed, or "lost": the thread ended first.',
      ['route', 'outcome']
    )
  }

  /** @returns what the route's shaping needs */
  add(options: LongRoute): Pick<Shaping, 'onStretch' | 'apart'> {
    const { name, route, maxShaped } = options
    const countStall = stallsOf(this.#services.metrics, name)
    const plan = this.#planOf(options)
    if (this.#threadCount === 0 || plan === undefined) return { onStretch: countStall }
    this.#plans.routes[name] = plan
    // A response that stands in for a failed one is sent many times.
    const isCopied = options.isCopied || route.fallback !== undefined
    const cost = new ShapingCost()
    const apart: ShapingApart = {
      unpacked: (bytes, headers) => unpackedLength(bytes, headers['content-encoding'], minBytes),
      isLong: unpacked => cost.isLong(unpacked),
      takes: (bytes, unpacked) => cost.isLong(unpacked) && this.#hasRoom(name, bytes),
      learn: (bytes, ms) => cost.add(bytes, ms),
      shape: async ({ main, parts }, { isTagged, isNeeded }) => {
        const task: ShapingTask = {
          route: name,
          main: 'source' in main ? movable(main.source, isCopied) : main,
          // Nobody else reads the bytes of a part.
          ...(parts && { parts: parts.parts.map(({ response }) => movableOf(response)) }),
          maxBytes: maxShaped,
          isTagged
        }
        const length = bytesOf(task)
        const outcome = await this.#open().run(task, isNeeded)
        if ('lost' in outcome) throw this.#lost(name, outcome)
        this.#answers.with(name, 'shaped').inc()
        // An error may take no time at all.
        if ('body' in outcome) cost.add(length, outcome.ms)
        this.#report(options, outcome, parts)
        return bodyOf(outcome, route.tooLarge)
      }
    }
    return { apart, onStretch: countStall }
  }

  async close(): Promise<void> {
    await this.#threads?.close()
  }

  /** Undefined where nothing is shaped, or a shape needs more than the bodies: expressions. */
  #planOf({ route, parts, dialect, contract }: LongRoute): ShapingPlan | undefined {
    const { shapes } = this.#plans
    const stepsOf = (shape: string | undefined) => shapes[shape ?? ''] ?? []
    const isShaped = route.shape !== undefined || parts !== undefined
    if (!isShaped || routeHasExpression(route, shapes)) return undefined
    return {
      steps: stepsOf(route.shape),
      envelope: { ...this.#envelope, dialect },
      contract,
      parts: parts && {
        into: parts.into,
        missing: parts.missing,
        parts: parts.parts.map(({ name, maxBytes, unwrap, into, isRequired, fallback }) => ({
          steps: stepsOf(route.parts[name]?.shape),
          name,
          maxBytes,
          unwrap,
          into,
          isRequired,
          fallback
        }))
      }
    }
  }

  #open(): ShapingThreads {
    this.#threads ??= new ShapingThreads({
      plans: this.#plans,
      threads: this.#threadCount
    })
    return this.#threads
  }

  #hasRoom(name: string, bytes: number): boolean {
    if (this.#open().hasRoom(bytes)) return true
    this.#answers.with(name, 'full').inc()
    return false
  }

  #lost(name: string, { error, lost }: Lost): GatewayError {
    const cause = new Error(error)
    if (lost === 'closed') return new GatewayError('gateway.stopping', { cause })
    this.#answers.with(name, 'lost').inc()
    if (lost === 'time') return new GatewayError('shape.too-large', { cause })
    return new GatewayError('overloaded', { cause, retryAfter: 1 })
  }

  /** Counts and logs what the event loop would have. */
  #report(
    { name, contract, parts, onMissing }: LongRoute,
    result: ThreadResult,
    gathered: GatheredParts | undefined
  ): void {
    for (const { path, part } of result.missing) {
      if (part === undefined) onMissing(path)
      else parts?.parts[part]?.onMissingPath(path)
    }
    for (const { part, error } of result.failedParts) {
      const failed = parts?.parts[part]
      if (failed !== undefined) {
        gathered?.onMissing(failed, new GatewayError(error.code, error.detail))
      }
    }
    if (contract !== undefined) {
      reportFindings(this.#services.drift, name, contract, result.findings)
    }
  }
}

/** @throws GatewayError of the body */
function bodyOf(result: ThreadResult, tooLarge: Shaping['tooLarge']) {
  if (!('code' in result)) return { body: bufferOf(result.body), tag: result.tag }
  if (tooLarge === 'pass' && result.bytes !== undefined) {
    return { unshaped: bufferOf(result.bytes) }
  }
  throw new GatewayError(result.code, result.detail)
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array<ArrayBuffer>): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}

function movableOf(response: PartResponse): TaskSource | 'empty' | 'missing' {
  return typeof response === 'string' ? response : movable(response, false)
}

/** @param isCopied whether others read the bytes too */
function movable({ bytes, headers }: JsonSource, isCopied: boolean): TaskSource {
  return {
    bytes: isCopied ? new Uint8Array(bytes) : ownBytes(bytes),
    headers: {
      'content-encoding': textOf(headers['content-encoding']),
      'content-type': textOf(headers['content-type'])
    }
  }
}

/** Bytes that may be moved: a part of a larger buffer is copied. */
function ownBytes(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer } = bytes
  return buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length
    ? (bytes as Uint8Array<ArrayBuffer>)
    : new Uint8Array(bytes)
}

function textOf(header: string | string[] | undefined): string | undefined {
  return header === undefined ? undefined : String(header)
}
