/** `shape`: shows the effect of each operation of a route's shape on a response. */
import { stringify } from 'yaml'
import { loadConfig } from '../config/load/load.ts'
import { flatten } from '../config/schema/shape-steps.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { compileShape, type ShapeContext } from '../shaping/shape.ts'
import type { LiveResponse } from '../dry-run/live-route.ts'
import { withLiveRoute } from './live-responses.ts'
import { readInput, shapesOf, type Target, targetOf } from './upstream-responses.ts'
import { changeLines } from './changes.ts'
import { jsonText, printText } from './output.ts'
import { CommandError, type Invocation } from './command.ts'

export async function shape(invocation: Invocation): Promise<number> {
  const {
    config: folder,
    rest: [name = ''],
    values: { input },
    io
  } = invocation
  const config = loadConfig(folder, io.env)
  const target = targetOf(config, name)
  const parts = Object.keys(target.route?.parts ?? {})
  if (target.shape === undefined && parts.length === 0) {
    throw new CommandError(`The route "${name}" has no shape: its responses pass unchanged.`)
  }
  if (typeof input === 'string' && parts.length > 0) {
    const isNameOfShape = targetOf(config, target.shape ?? name).route === undefined
    throw new CommandError(noFileFor(target, parts, isNameOfShape))
  }
  const { values } = invocation
  const steps = flatten(config.routes.shapes[target.shape ?? ''] ?? [], config.routes.shapes)
  const { context } = shapesOf(config, target)
  if (typeof input === 'string') {
    const before = await readInput(input, io)
    return report(before, trace(steps, before, context), invocation)
  }
  const response = await withLiveRoute(config, target, { values, context, io }, ask => ask())
  return report(response.main, traceLive(steps, response, context), invocation)
}

/**
 * A file has the response of one back-end, and the shape is for that of all.
 * @param isNameOfShape whether the shape has a name of its own, which no route has
 */
function noFileFor(
  { name, shape: shapeName = '' }: Target,
  parts: readonly string[],
  isNameOfShape: boolean
): string {
  const whole = isNameOfShape
    ? `, or try the shape alone on the whole: shape ${shapeName} --input FILE`
    : ''
  return (
    `The route "${name}" adds parts to the response before it is shaped (${parts.join(', ')}): ` +
    `request all by --live${whole}.`
  )
}

/** The gateway's own work on a response with parts: before the shape, and after it. */
type PartsStep = { readonly parts: readonly string[] } | { readonly missing: readonly string[] }

interface TracedStep {
  readonly operation: ShapeStep | PartsStep
  readonly after?: unknown
  /** The path of `unwrap` that the response does not have. */
  readonly missing?: string
  /** The failure with which the operation ended the response. */
  readonly failed?: string
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
function trace(steps: readonly ShapeStep[], before: unknown, context: ShapeContext): TracedStep[] {
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
    current = apply(current)
    done.push({ operation, after: current, ...(missing !== undefined && { missing }) })
  }
  return done
}

/** With the parts, which the gateway adds before the shape. */
function traceLive(
  steps: readonly ShapeStep[],
  { whole, parts, missing, complete }: LiveResponse,
  context: ShapeContext
): TracedStep[] {
  const added: TracedStep[] = parts.length === 0 ? [] : [{ operation: { parts }, after: whole }]
  const done = [...added, ...trace(steps, whole, context)]
  const last = done.at(-1)
  if (missing.length === 0 || last === undefined || last.failed !== undefined) return done
  return [...done, { operation: { missing }, after: complete(last.after) }]
}

function report(before: unknown, traced: readonly TracedStep[], { json, io }: Invocation): number {
  const show = (value: unknown) => io.stdout.write(jsonText(value))
  const failed = traced.some(step => step.failed !== undefined)
  if (json) {
    show({ before, operations: traced, ...(!failed && { after: traced.at(-1)?.after ?? before }) })
    return failed ? 1 : 0
  }
  printText('before', io)
  show(before)
  let last = before
  traced.forEach(({ operation, after, missing, failed: why }, index) => {
    printText(
      `\n${index + 1}. ${stringify(operation, { flowCollectionPadding: true, lineWidth: 110 }).trimEnd().replaceAll('\n', '\n   ')}`,
      io
    )
    if (missing !== undefined) {
      printText(`   the response has no "${missing}": null from here on`, io)
    }
    for (const line of why === undefined ? changeLines(last, after) : [why]) {
      printText(`   ${line}`, io)
    }
    last = after
  })
  if (failed) return 1
  printText('\nafter', io)
  show(last)
  return 0
}
