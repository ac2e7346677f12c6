/** The effect of each operation of a shape. */
import type { Config } from '../config/schema/config.ts'
import { flatten } from '../config/schema/shape-steps.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { toGatewayError } from '../errors/errors.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { loadModules, reasonOf, type ShapeUse } from '../shaping/module.ts'
import { compileShape } from '../shaping/shape.ts'

export interface TracedStep {
  readonly operation: ShapeStep
  readonly after?: unknown
  /** The path of `unwrap` that the response does not have. */
  readonly missing?: string
  /** The failure with which the operation ended the response. */
  readonly failed?: string
}

/**
 * Applies each operation by itself; a running gateway applies all in one pass.
 * @param name of the shape
 */
export async function traceShape(
  config: Config,
  { name, ...use }: ShapeUse & { readonly name: string },
  before: unknown
): Promise<TracedStep[]> {
  const { gateway, routes } = config
  const { shapes, paging } = routes
  const { success } = createEnvelope(gateway.envelope)
  const context = { wrap: success, shapes, paging, modules: await loadModules(config) }
  const done: TracedStep[] = []
  let current = before
  for (const operation of singles(flatten(shapes[name] ?? [], shapes))) {
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

/** The operations within `each` and `at` as single steps. */
function singles(steps: readonly ShapeStep[]): ShapeStep[] {
  return steps.flatMap((step): ShapeStep[] => {
    const { each, at } = step
    if (each !== undefined) return singles(each).map(inner => ({ each: [inner] }))
    if (at === undefined) return [step]
    return singles(at.operations).map(inner => ({ at: { path: at.path, operations: [inner] } }))
  })
}
