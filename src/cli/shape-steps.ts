/** The effect of each operation of a shape. */
import type { Config } from '../config/schema/config.ts'
import { flatten } from '../config/schema/shape-steps.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { toGatewayError } from '../errors/errors.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { loadModules, reasonOf } from '../shaping/module.ts'
import type { ShapeUse } from '../shaping/operation.ts'
import { compileShape, type ShapeContext } from '../shaping/shape.ts'

export interface TracedStep {
  readonly operation: ShapeStep
  readonly after?: unknown
  /** The path of `unwrap` that the response does not have. */
  readonly missing?: string
  /** The failure with which the operation ended the response. */
  readonly failed?: string
}

/** @param name of the shape */
export async function traceShape(
  config: Config,
  { name, ...use }: ShapeUse & { readonly name: string },
  before: unknown
): Promise<TracedStep[]> {
  const context = { ...shapeContextOf(config), modules: await loadModules(config) }
  return await trace(flatten(context.shapes[name] ?? [], context.shapes), { before, use }, context)
}

/** The settings for compiling a shape. */
function shapeContextOf({ gateway, routes: { shapes, paging } }: Config): ShapeContext {
  return { wrap: createEnvelope(gateway.envelope).success, shapes, paging }
}

/** The operations within `each` and `at` as single steps. */
const singles = (steps: readonly ShapeStep[]): ShapeStep[] =>
  steps.flatMap(step => {
    if (step.each !== undefined) {
      return singles(step.each).map((each): ShapeStep => ({ each: [each] }))
    }
    if (step.at !== undefined) {
      return singles(step.at.operations).map((operation): ShapeStep => ({
        at: { path: step.at?.path ?? '', operations: [operation] }
      }))
    }
    return [step]
  })

/** Applies each operation by itself; a running gateway applies all in one pass. */
async function trace(
  steps: readonly ShapeStep[],
  { before, use }: { readonly before: unknown; readonly use: ShapeUse },
  context: ShapeContext
): Promise<TracedStep[]> {
  const done: TracedStep[] = []
  let current = before
  for (const operation of singles(steps)) {
    let missing: string | undefined
    const onMissing = (path: string) => {
      missing = path
    }
    const { refusal, apply } = compileShape([operation], { ...context, onMissing })
    const refused = refusal(current)
    if (refused !== undefined) {
      return [...done, { operation, failed: `a failure: ${refused.status}, ${refused.message}` }]
    }
    try {
      current = await apply(current, use)
    } catch (error) {
      const { code, cause } = toGatewayError(error)
      return [...done, { operation, failed: `${code}: ${reasonOf(cause as Error)}` }]
    }
    done.push({ operation, after: current, ...(missing !== undefined && { missing }) })
  }
  return done
}
