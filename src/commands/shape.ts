/** `shape`: what a route's shape makes of an answer, operation by operation. */
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { stringify } from 'yaml'
import { type Config, loadConfig } from '../config/load.ts'
import type { ShapeStep } from '../config/shapes.ts'
import { createEnvelope } from '../envelope.ts'
import { GatewayError } from '../errors.ts'
import { createExpressions } from '../proxy/expressions.ts'
import { compileShape, flatten, type ShapeContext } from '../proxy/shape.ts'
import { changes } from './changes.ts'
import { type Command, CommandError, type Given, UsageError } from './command.ts'

export const shape: Command = {
  summary: 'show what a route’s shape makes of an answer, operation by operation',
  usage: ['ROUTE --input FILE', 'ROUTE --live [--header "name: value"] [--path PATH]'],
  details: `
--input reads the upstream's JSON from FILE, or from standard input where FILE is -.
--live asks the route's upstream for it, without a session: name what the upstream
wants to see in --header. ROUTE is a route of routes.yaml, profile, or a shape.`,
  options: {
    input: { type: 'string', value: 'FILE', description: 'the upstream’s answer; - is standard input' },
    live: { type: 'boolean', description: 'ask the upstream' },
    header: { type: 'string', value: 'FIELD', description: 'a header field for --live, such as "authorization: Bearer …"' },
    path: { type: 'string', value: 'PATH', description: 'the path at the upstream for --live, where the route has a *' }
  },
  run: async given => {
    const { config: folder, rest: [name], values: { input, live } } = given
    if (name === undefined || given.rest.length > 1 || (input === undefined) === (live !== true)) throw new UsageError('Name a route, and either --input or --live.')
    const config = loadConfig(folder, process.env)
    const target = targetOf(config, name)
    const source = typeof input === 'string' ? await readInput(input) : await askLive(config, target, given)
    let before: unknown
    try {
      before = JSON.parse(source)
    } catch {
      throw new CommandError('That is no JSON.')
    }
    const expressions = createExpressions()
    try {
      const { routes: { shapes }, limits: { expressions: { timeout, maxSize } }, gateway } = config
      const { success } = createEnvelope({ ...gateway.envelope, dialect: target.dialect ?? gateway.envelope.dialect })
      const context = { wrap: success, shapes, evaluate: (expression: string, value: unknown) => expressions.evaluate(expression, value, { timeoutMs: timeout, maxBytes: maxSize }) }
      const steps = flatten(shapes[target.shape] ?? [], shapes)
      return report(before, await trace(steps, before, context), given.json)
    } finally {
      await expressions.close()
    }
  }
}

interface Target {
  readonly shape: string
  readonly route?: { readonly upstream?: string, readonly path: string, readonly rewrite?: string }
  readonly dialect?: 'dual' | 'ant-design-pro' | 'base-response'
}

function targetOf ({ routes: { routes, endpoints: { profile }, shapes } }: Config, name: string): Target {
  const route = Object.hasOwn(routes, name) ? routes[name] : name === 'profile' ? profile : undefined
  if (route === undefined) {
    if (!Object.hasOwn(shapes, name)) throw new CommandError(`There is no route and no shape "${name}". Routes: ${Object.keys(routes).join(', ') || 'none'}.`)
    return { shape: name }
  }
  if (route.shape === undefined) throw new CommandError(`The route "${name}" has no shape: its answers pass as they are.`)
  return { shape: route.shape, route, ...('dialect' in route && route.dialect !== undefined && { dialect: route.dialect }) }
}

async function readInput (file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : readFileSync(file, 'utf8')
  } catch (error) {
    throw new CommandError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'}).`)
  }
}

async function askLive ({ routes: { upstreams } }: Config, { route }: Target, { values: { header, path } }: Given): Promise<string> {
  const upstream = upstreams[route?.upstream ?? '']
  if (route === undefined || upstream === undefined) throw new UsageError('--live needs a route with an upstream.')
  const at = typeof path === 'string' ? path : route.rewrite ?? route.path
  if (at.endsWith('*')) throw new UsageError('This route stands for many paths: say which with --path.')
  const [, name = '', value = ''] = /^([^:\s]+):\s*(.*)$/.exec(typeof header === 'string' ? header : '') ?? []
  const request = fetch(upstream.url.replace(/\/$/, '') + at, { headers: { accept: 'application/json', ...(name !== '' && { [name]: value }) }, signal: AbortSignal.timeout(upstream.responseTimeout), redirect: 'error' })
  const answer = await request.catch((error: unknown) => { throw new CommandError(`${upstream.url} does not answer: ${error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)}`) })
  process.stderr.write(`${answer.status} from ${upstream.url}\n`)
  return answer.text()
}

interface Traced {
  readonly operation: ShapeStep
  readonly after?: unknown
  /** Where the operation ended the answer. */
  readonly failed?: string
}

/** What is done within `each` and `at`, one by one. */
const singles = (steps: readonly ShapeStep[]): ShapeStep[] => steps.flatMap(step => {
  if (step.each !== undefined) return singles(step.each).map((each): ShapeStep => ({ each: [each] }))
  if (step.at !== undefined) return singles(step.at.operations).map((operation): ShapeStep => ({ at: { path: step.at?.path ?? '', operations: [operation] } }))
  return [step]
})

/** Each operation by itself; all of them together do the same in one pass. */
async function trace (steps: readonly ShapeStep[], before: unknown, context: ShapeContext): Promise<Traced[]> {
  const done: Traced[] = []
  let current = before
  for (const operation of singles(steps)) {
    const { refusal, apply } = compileShape([operation], context)
    const refused = refusal(current)
    if (refused !== undefined) return [...done, { operation, failed: `a failure: ${refused.status}, ${refused.message}` }]
    try {
      current = await apply(current)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return [...done, { operation, failed: `${error.code}: ${error.cause instanceof Error ? error.cause.message : error.message}` }]
    }
    done.push({ operation, after: current })
  }
  return done
}

function report (before: unknown, traced: readonly Traced[], json: boolean): number {
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
  traced.forEach(({ operation, after, failed: why }, index) => {
    write(`\n${index + 1}. ${stringify(operation, { flowCollectionPadding: true, lineWidth: 110 }).trimEnd().replaceAll('\n', '\n   ')}`)
    for (const line of why === undefined ? changes(last, after) : [why]) write(`   ${line}`)
    last = after
  })
  if (failed) return 1
  write('\nafter')
  show(last)
  return 0
}
