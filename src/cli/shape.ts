/** `shape`: shows the effect of each operation of a route's shape on a response. */
import { stringify } from 'yaml'
import { loadConfig } from '../config/load/load.ts'
import { flatten } from '../config/schema/shape-steps.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { GatewayError } from '../errors.ts'
import { compileShape, type ShapeContext } from '../shaping/shape.ts'
import {
  askLive,
  liveOptions,
  parseResponse,
  readInput,
  targetOf,
  withShapes
} from './upstream-responses.ts'
import { changeLines } from './changes.ts'
import { type Command, CommandError, UsageError } from './command.ts'

export const shape: Command = {
  summary: 'show the effect of each operation of a route’s shape on a response',
  usage: [
    'ROUTE --input FILE [--json]',
    'ROUTE --live [--header "name: value"] [--path PATH] [--json]'
  ],
  details: `
--input reads the upstream's JSON from FILE; - is standard input. --live requests it
from the route's upstream, without a session: add the upstream's credential by
--header. ROUTE is a route of routes.yaml, profile, or a shape.

Examples:
  console-gateway shape orders --input answer.json
  curl -s http://orders.internal/orders | console-gateway shape orders --input -`,
  options: {
    input: {
      type: 'string',
      value: 'FILE',
      description: 'the upstream’s response; - is standard input'
    },
    ...liveOptions
  },
  run: async invocation => {
    const {
      config: folder,
      rest: [name],
      values: { input, live }
    } = invocation
    if (
      name === undefined ||
      invocation.rest.length > 1 ||
      (input === undefined) === (live !== true)
    ) {
      throw new UsageError('Name a route, and either --input or --live.')
    }
    const config = loadConfig(folder, process.env)
    const target = targetOf(config, name)
    if (target.shape === undefined) {
      throw new CommandError(`The route "${name}" has no shape: its responses pass unchanged.`)
    }
    const source =
      typeof input === 'string'
        ? await readInput(input)
        : (await askLive(config, target, invocation)).body
    const before = parseResponse(source)
    const steps = flatten(config.routes.shapes[target.shape] ?? [], config.routes.shapes)
    return report(
      before,
      await withShapes(config, target, context => trace(steps, before, context)),
      invocation.json
    )
  }
}

interface TracedStep {
  readonly operation: ShapeStep
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
async function trace(
  steps: readonly ShapeStep[],
  before: unknown,
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
      current = await apply(current)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return [
        ...done,
        {
          operation,
          failed: `${error.code}: ${error.cause instanceof Error ? error.cause.message : error.message}`
        }
      ]
    }
    done.push({ operation, after: current, ...(missing !== undefined && { missing }) })
  }
  return done
}

function report(before: unknown, traced: readonly TracedStep[], json: boolean): number {
  const write = (line: string) => process.stdout.write(`${line}\n`)
  const show = (value: unknown) => write(JSON.stringify(value, null, 2))
  const failed = traced.some(step => step.failed !== undefined)
  if (json) {
    show({ before, operations: traced, ...(!failed && { after: traced.at(-1)?.after ?? before }) })
    return failed ? 1 : 0
  }
  write('before')
  show(before)
  let last = before
  traced.forEach(({ operation, after, missing, failed: why }, index) => {
    write(
      `\n${index + 1}. ${stringify(operation, { flowCollectionPadding: true, lineWidth: 110 }).trimEnd().replaceAll('\n', '\n   ')}`
    )
    if (missing !== undefined) {
      write(`   the response has no "${missing}": null from here on`)
    }
    for (const line of why === undefined ? changeLines(last, after) : [why]) write(`   ${line}`)
    last = after
  })
  if (failed) return 1
  write('\nafter')
  show(last)
  return 0
}
