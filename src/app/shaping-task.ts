/**
 * The whole work on long bodies, from upstreams' bytes to those for the client, as a thread does
 * it. It gives what the event loop would give, errors included.
 */
import type { ContractRules } from '../contract/contract.ts'
import { createFindingContract, type Findings } from '../contract/findings.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { type GatewayError, toGatewayError } from '../errors.ts'
import { readJson, writeJson } from '../json/body.ts'
import {
  type MergeRules,
  type PartResponse,
  type PartRules,
  resultOf,
  shapeMerged
} from '../proxy/merge-parts.ts'
import { entityTagOf } from '../shaping/entity-tag.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { compileShape, type ShapeContext } from '../shaping/shape.ts'
import { applyShape, checkContract } from './shaped-values.ts'

type PartPlan = Omit<PartRules, 'shape'> & { readonly steps: readonly ShapeStep[] }

/** A route's part of config that its long bodies need: plain data, so that a thread can get it. */
export interface ShapingPlan {
  readonly steps: readonly ShapeStep[]
  readonly envelope: GatewayConfig['envelope']
  readonly contract: ContractRules | undefined
  /** Of a route with parts. */
  readonly parts?: (MergeRules & { readonly parts: readonly PartPlan[] }) | undefined
}

/** A body of an upstream. */
export interface TaskSource {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly headers: {
    readonly 'content-encoding': string | undefined
    readonly 'content-type': string | undefined
  }
}

export interface ShapingTask {
  readonly route: string
  /** The route's own response, or the value in its place. */
  readonly main: TaskSource | { readonly value: unknown }
  /** In the order of the plan. */
  readonly parts?: ReadonlyArray<TaskSource | 'empty' | 'missing'>
  readonly maxBytes: number
  /** Whether the response may be cached, so that it gets an `ETag`. */
  readonly isTagged: boolean
}

type Failure = Pick<GatewayError, 'code' | 'detail'>
type Shaped = { readonly body: Uint8Array<ArrayBuffer>; readonly tag: string | undefined } | Failure

export type ShapingResult = Shaped & {
  /** Milliseconds of the work. */
  readonly ms: number
  /**
   * The paths that `unwrap` did not find.
   * @param part its place in the plan; undefined: the route's shape
   */
  readonly missing: ReadonlyArray<{ readonly path: string; readonly part?: number }>
  /** Parts that are not required and failed, by their place in the plan. */
  readonly failedParts: ReadonlyArray<{ readonly part: number; readonly error: Failure }>
  readonly findings: Findings
}

/** The bodies of a task. */
export function sourcesOf({ main, parts = [] }: ShapingTask): TaskSource[] {
  return [main, ...parts].filter(source => typeof source === 'object' && 'bytes' in source)
}

/** Of all bodies of a task, before they are moved. */
export function bytesOf(task: ShapingTask): number {
  return sourcesOf(task).reduce((sum, { bytes }) => sum + bytes.length, 0)
}

/** The reports of one task, beside its result. */
interface Reports {
  readonly missing: Array<ShapingResult['missing'][number]>
  readonly failedParts: Array<ShapingResult['failedParts'][number]>
}

const noReports = (): Reports => ({ missing: [], failedParts: [] })

/** @param shapes the shapes of config, which `use` names */
export function compileWork(
  { steps, envelope, contract, parts }: ShapingPlan,
  shapes: ShapeContext['shapes']
): (task: ShapingTask) => ShapingResult {
  let reports = noReports()
  const [check, takeFindings] =
    contract === undefined ? [undefined, () => ({})] : createFindingContract(contract)
  const shapeOf = (of: readonly ShapeStep[], onMissing: (path: string) => void) => {
    const shape = compileShape(of, {
      wrap: createEnvelope(envelope).success,
      evaluate: () => Promise.reject(new Error('expressions have threads of their own')),
      onMissing,
      shapes
    })
    return (value: unknown) => applyShape(shape, value)
  }
  const shapeRoute = shapeOf(steps, path => reports.missing.push({ path }))
  const shapeWhole = (value: unknown) => checkContract(check, shapeRoute(value))
  const rules = parts?.parts.map((plan, part) => ({
    ...plan,
    shape: shapeOf(plan.steps, path => reports.missing.push({ path, part }))
  }))
  const merged = (main: unknown, responses: NonNullable<ShapingTask['parts']>) => {
    if (parts === undefined || rules === undefined) return shapeWhole(main)
    const onMissing = (rule: PartRules, { code, detail }: GatewayError) => {
      const part = rules.findIndex(({ name }) => name === rule.name)
      reports.failedParts.push({ part, error: { code, detail } })
    }
    const results = rules.map((rule, index) =>
      resultOf(rule, responseOf(responses[index] ?? 'missing'), onMissing)
    )
    return shapeMerged(main, parts, { results, onMissing }, shapeWhole)
  }
  const shapeBytes = ({ main, parts: responses = [], maxBytes, isTagged }: ShapingTask): Shaped => {
    try {
      const value = 'bytes' in main ? readJson(bufferOf(main), main.headers, maxBytes) : main.value
      const body = new TextEncoder().encode(writeJson(merged(value, responses)))
      return { body, tag: isTagged ? entityTagOf(body) : undefined }
    } catch (error) {
      const { code, detail } = toGatewayError(error)
      return { code, detail }
    }
  }
  return task => {
    reports = noReports()
    const startedAt = performance.now()
    const shaped = shapeBytes(task)
    const findings = takeFindings()
    return { ...shaped, ...reports, findings, ms: performance.now() - startedAt }
  }
}

function responseOf(response: TaskSource | 'empty' | 'missing'): PartResponse {
  if (typeof response === 'string') return response
  return { bytes: bufferOf(response), headers: response.headers }
}

function bufferOf({ bytes: { buffer, byteOffset, length } }: TaskSource): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}
