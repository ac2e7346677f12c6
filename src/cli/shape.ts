/** `shape`: what a route's shape makes of an answer, operation by operation. */
import { stringify } from 'yaml'
import { loadConfig } from '../config/load/load.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { GatewayError } from '../errors.ts'
import { compileShape, flatten, type ShapeContext } from '../shaping/shape.ts'
import { askLive, parseAnswer, readInput, targetOf, withShapes } from './upstream-responses.ts'
import { changes } from './changes.ts'
import { type Command, CommandError, UsageError } from './command.ts'

export const shape: Command = {
  summary: 'show what a route’s shape makes of an answer, operation by operation',
  usage: [
    'ROUTE --input FILE [--json]',
    'ROUTE --live [--header "name: value"] [--path PATH] [--json]'
  ],
  details: `
--input reads the upstream's JSON from FILE, or from standard input where FILE is -.
--live asks the route's upstream for it, without a session: name what the upstream
wants to see in --header. ROUTE is a route of routes.yaml, profile, or a shape.

Examples:
  console-gateway shape orders --input answer.json
  curl -s http://orders.internal/orders | console-gateway shape orders --input -`,
  options: {
    input: {
      type: 'string',
      value: 'FILE',
      description: 'the upstream’s answer; - is standard input'
    },
    live: { type: 'boolean', description: 'ask the upstream' },
    header: {
      type: 'string',
      value: 'FIELD',
      description: 'a header field for --live, such as "authorization: Bearer …"'
    },
    path: {
      type: 'string',
      value: 'PATH',
      description: 'the path at the upstream for --live, where the route has a *'
    }
  },
  run: async given => {
    const {
      config: folder,
      rest: [name],
      values: { input, live }
    } = given
    if (name === undefined || given.rest.length > 1 || (input === undefined) === (live !== true)) {
      throw new UsageError('Name a route, and either --input or --live.')
    }
    const config = loadConfig(folder, process.env)
    const target = targetOf(config, name)
    if (target.shape === undefined) {
      throw new CommandError(`The route "${name}" has no shape: its answers pass as they are.`)
    }
    const source =
      typeof input === 'string'
        ? await readInput(input)
        : (await askLive(config, target, given)).body
    const before = parseAnswer(source)
    const steps = flatten(config.routes.shapes[target.shape] ?? [], config.routes.shapes)
    return report(
      before,
      await withShapes(config, target, context => trace(steps, before, context)),
      given.json
    )
  }
}

interface Traced {
  readonly operation: ShapeStep
  readonly after?: unknown
  /** The path at which `unwrap` found nothing. */
  readonly missing?: string
  /** Where the operation ended the answer. */
  readonly failed?: string
}

/** What is done within `each` and `at`, one by one. */
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

/** Each operation by itself; all of them together do the same in one pass. */
async function trace(
  steps: readonly ShapeStep[],
  before: unknown,
  context: ShapeContext
): Promise<Traced[]> {
  const done: Traced[] = []
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

function report(before: unknown, traced: readonly Traced[], json: boolean): number {
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
      write(`   nothing is at "${missing}" of this answer: null from here on`)
    }
    for (const line of why === undefined ? changes(last, after) : [why]) write(`   ${line}`)
    last = after
  })
  if (failed) return 1
  write('\nafter')
  show(last)
  return 0
}
