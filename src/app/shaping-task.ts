/**
 * The whole work on a long body, from an upstream's bytes to those for the client, as a thread does
 * it. It gives what the event loop would give, errors included.
 */
import type { ContractRules } from '../contract/contract.ts'
import { createFindingContract, type Findings } from '../contract/findings.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { type GatewayError, toGatewayError } from '../errors.ts'
import { readJson, writeJson } from '../json/body.ts'
import { entityTagOf } from '../shaping/entity-tag.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { compileShape, type ShapeContext } from '../shaping/shape.ts'
import { applyShape, checkContract } from './shaped-values.ts'

/** A route's part of config that its long bodies need: plain data, so that a thread can get it. */
export interface ShapingPlan {
  readonly steps: readonly ShapeStep[]
  readonly envelope: GatewayConfig['envelope']
  readonly contract: ContractRules | undefined
}

export interface ShapingTask {
  readonly route: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly headers: {
    readonly 'content-encoding': string | undefined
    readonly 'content-type': string | undefined
  }
  readonly maxBytes: number
  /** Whether the response may be cached, so that it gets an `ETag`. */
  readonly isTagged: boolean
}

type Shaped =
  | { readonly body: Uint8Array<ArrayBuffer>; readonly tag: string | undefined }
  | Pick<GatewayError, 'code' | 'detail'>

export type ShapingResult = Shaped & {
  /** Milliseconds of the work. */
  readonly ms: number
  /** The paths that `unwrap` did not find. */
  readonly missing: readonly string[]
  readonly findings: Findings
}

/** @param shapes the shapes of config, which `use` names */
export function compileWork(
  { steps, envelope, contract }: ShapingPlan,
  shapes: ShapeContext['shapes']
): (task: ShapingTask) => ShapingResult {
  let missing: string[] = []
  const [check, takeFindings] =
    contract === undefined ? [undefined, () => ({})] : createFindingContract(contract)
  const shape = compileShape(steps, {
    wrap: createEnvelope(envelope).success,
    evaluate: () => Promise.reject(new Error('expressions have threads of their own')),
    onMissing: path => missing.push(path),
    shapes
  })
  const shapeBytes = ({ bytes, headers, maxBytes, isTagged }: ShapingTask): Shaped => {
    try {
      const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      const value = applyShape(shape, readJson(source, headers, maxBytes))
      const body = new TextEncoder().encode(writeJson(checkContract(check, value)))
      return { body, tag: isTagged ? entityTagOf(body) : undefined }
    } catch (error) {
      const { code, detail } = toGatewayError(error)
      return { code, detail }
    }
  }
  return task => {
    missing = []
    const startedAt = performance.now()
    const shaped = shapeBytes(task)
    return { ...shaped, missing, findings: takeFindings(), ms: performance.now() - startedAt }
  }
}
