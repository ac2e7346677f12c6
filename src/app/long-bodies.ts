/**
 * Decides for each route which bodies are long, and has a thread shape them: requests of others do
 * not wait for them.
 */
import type { Config } from '../config/schema/config.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import type { RouteConfig } from '../config/schema/routes.ts'
import { hasExpression } from '../config/schema/shape-steps.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import type { ContractRules } from '../contract/contract.ts'
import { reportFindings } from '../contract/findings.ts'
import { GatewayError } from '../errors.ts'
import type { Counter, Family } from '../observability/metrics.ts'
import type { Lost } from '../shaping/thread-runner.ts'
import type { Shaping, ShapingApart } from './endpoints/shaped.ts'
import type { GenerationServices } from './generation-services.ts'
import { ShapingCost } from './shaping-cost.ts'
import { stallsOf } from './shaping-stalls.ts'
import type { ShapingPlan } from './shaping-task.ts'
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
    this.#threadCount = threadsFor(gateway.server.shapingThreads, gateway.server.workers)
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
    const steps = this.#stepsOf(route)
    if (this.#threadCount === 0 || steps === undefined) return { onStretch: countStall }
    this.#plans.routes[name] = {
      steps,
      envelope: { ...this.#envelope, dialect: options.dialect },
      contract: options.contract
    }
    // A response that stands in for a failed one is sent many times.
    const isCopied = options.isCopied || route.fallback !== undefined
    const cost = new ShapingCost()
    const apart: ShapingApart = {
      takes: bytes => cost.isLong(bytes) && this.#hasRoom(name, bytes),
      shape: async (bytes, headers, { isTagged, isNeeded }) => {
        const { length } = bytes
        const moved = isCopied ? new Uint8Array(bytes) : ownBytes(bytes)
        const task = {
          route: name,
          bytes: moved,
          headers: {
            'content-encoding': textOf(headers['content-encoding']),
            'content-type': textOf(headers['content-type'])
          },
          maxBytes: maxShaped,
          isTagged
        }
        const outcome = await this.#open().run(task, [moved.buffer], isNeeded)
        if ('lost' in outcome) throw this.#lost(name, outcome)
        this.#answers.with(name, 'shaped').inc()
        // An error may take no time at all.
        if ('body' in outcome) cost.add(length, outcome.ms)
        this.#report(options, outcome)
        return bodyOf(outcome, route.tooLarge)
      }
    }
    const onStretch: Shaping['onStretch'] = (ms, bytes) => {
      countStall(ms)
      if (bytes !== undefined) cost.add(bytes, ms)
    }
    return { apart, onStretch }
  }

  async close(): Promise<void> {
    await this.#threads?.close()
  }

  /** Undefined where a shape needs more than the body: other responses, expressions. */
  #stepsOf({ shape, parts, upstream }: RouteConfig): readonly ShapeStep[] | undefined {
    const { shapes } = this.#plans
    const steps = shapes[shape ?? '']
    const isAlone = upstream !== undefined && Object.keys(parts).length === 0
    return isAlone && steps !== undefined && !hasExpression(steps, shapes) ? steps : undefined
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
  #report({ name, contract, onMissing }: LongRoute, result: ThreadResult): void {
    for (const path of result.missing) onMissing(path)
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
