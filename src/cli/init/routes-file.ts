/** `routes.yaml`, from what `init` was told and saw. */
import { parseKeepingDigits } from '../../json/digits.ts'
import { isRecord, type Json } from '../../json/values.ts'
import type { BackendEnvelope } from './envelope.ts'
import { exampleOf } from './examples.ts'
import type { Findings } from './model.ts'
import { directMembers, firstNamed } from './paths.ts'
import type { SeenRoute } from './routes.ts'
import { entry, file, flow, section } from './yaml.ts'

const head = [
  '# yaml-language-server: $schema=schema/routes.schema.json',
  '# The back-end, the paths that the console may call, and what it gets.',
  '# All keys: docs/configuration.md'
]

type Step = Readonly<Record<string, unknown>>

interface Shapes {
  /** By name; a preset has the others. */
  readonly shapes: ReadonlyMap<string, readonly Step[]>
  readonly shapeOf: ReadonlyMap<SeenRoute, string>
}

const shapeComments = new Map([
  ['rows', 'A list of the back-end as { rows, total }.'],
  ['item', 'A single value of the back-end.'],
  ['page', 'What the console wants of { rows, total }.'],
  ['detail', 'What the console wants of a single value.'],
  ['list', 'For `shape` of a route with a list.'],
  ['record', 'For `shape` of a route with a single value.']
])

const identity = JSON.stringify([{ default: {} }])

/** The forms of a list, and of a single value, for a console of the dialect `dual`. */
const consoleForms = {
  page: [{ paging: { list: 'rows', total: 'total' } }],
  detail: [{ wrap: 'envelope' }]
}

/** @param failing names of expectations that the config does not meet; they are left out */
export function routesFile(findings: Findings, failing: ReadonlySet<string>): string {
  const { shapes, shapeOf } = shapesOf(findings)
  const routes = findings.routes.flatMap((route, index) => [
    ...(index === 0 ? [] : ['']),
    ...routeLines(route, shapeOf.get(route) ?? 'record')
  ])
  const expectations = Object.entries(expectationsOf(findings)).filter(
    ([name]) => !failing.has(name)
  )
  return file(head, [
    section('upstreams', section('backend', upstreamLines(findings))),
    pagingLines(findings),
    section('routes', routes),
    section(
      'shapes',
      [...shapes].flatMap(([name, steps]) => shapeLines(name, steps))
    ),
    section(
      'expect',
      expectations.flatMap(([name, value]) => entry(name, value)),
      'What this config must do: check, each start and each reload try it. The values are made up.'
    )
  ])
}

function upstreamLines({ url, headers, signIn, backendPreset }: Findings): string[] {
  return [
    `url: \${BACKEND_URL:-${url}}`,
    ...(Object.keys(headers).length === 0 ? [] : entry('headers', headers)),
    ...(signIn === undefined || backendPreset !== undefined
      ? []
      : entry('credential', signIn.style, 'How the back-end takes the token of the session.'))
  ]
}

function pagingLines({ console: { preset }, backendPreset }: Findings): string[] {
  if (preset !== undefined || backendPreset === undefined) return []
  return entry(
    'paging',
    { page: 'current', size: 'pageSize', defaultSize: 20 },
    'The names of paging that the console sends.'
  )
}

function routeLines(route: SeenRoute, shape: string): string[] {
  const { name, publicPath, path, isPublic } = route
  return [
    ...(isPublic
      ? ['# The back-end answers it without a token too; `access: public` would do so here.']
      : []),
    `${name}:`,
    ...[
      `path: ${publicPath}`,
      'upstream: backend',
      ...(publicPath === path ? [] : [`rewrite: ${path}`]),
      `shape: ${shape}`,
      `contract: { file: contracts/${name}.schema.json }`
    ].map(line => `  ${line}`)
  ]
}

function shapeLines(name: string, steps: readonly Step[]): string[] {
  const comment = shapeComments.get(name)
  return [
    ...(comment === undefined ? [] : [`# ${comment}`]),
    `${name}:`,
    ...steps.map(step => `  - ${flow(step)}`)
  ]
}

function shapesOf(findings: Findings): Shapes {
  const { routes, console: choice, backendPreset } = findings
  const shapes = new Map<string, readonly Step[]>()
  const shapeOf = new Map<SeenRoute, string>()
  const define = (kind: 'rows' | 'item', last: 'page' | 'detail') => {
    const ofKind = routes.filter(route => (route.list !== undefined) === (kind === 'rows'))
    if (ofKind.length === 0) return
    const common = mostCommon(ofKind.map(route => JSON.stringify(stepsOf(route, findings))))
    const steps = parseKeepingDigits(common ?? identity) as Step[]
    if (backendPreset === undefined) shapes.set(kind, steps)
    for (const route of ofKind) {
      const routeSteps = stepsOf(route, findings)
      const isCommon = JSON.stringify(routeSteps) === common || backendPreset !== undefined
      if (!isCommon) shapes.set(route.name, [...routeSteps, { use: last }])
      const shared = kind === 'rows' ? 'list' : 'record'
      shapeOf.set(route, isCommon ? shared : route.name)
    }
    if (choice.preset !== undefined) return
    shapes.set(last, consoleForms[last])
    shapes.set(kind === 'rows' ? 'list' : 'record', [{ use: kind }, { use: last }])
  }
  define('rows', 'page')
  define('item', 'detail')
  return { shapes, shapeOf }
}

/** The operations that make the neutral form of a response. */
function stepsOf(route: SeenRoute, { envelope }: Findings): Step[] {
  const steps = [...statusStep(route.envelope, envelope), ...neutralSteps(route)]
  return steps.length === 0 ? [{ default: {} }] : steps
}

function neutralSteps({ list, response, envelope }: SeenRoute): Step[] {
  if (list === undefined) {
    const data = dataPathOf(response.body, envelope)
    return data === undefined ? [] : [{ unwrap: data }]
  }
  if (list.rows === '') return [{ nest: { as: 'rows', count: 'total' } }]
  const total = list.total ?? 'total'
  const both = [
    [list.rows, 'rows'],
    [total, 'total']
  ]
  // The first move would replace the member `rows` that holds the total.
  const inOrder = total.startsWith('rows.') ? both.toReversed() : both
  const moves = inOrder.filter(([from, to]) => from !== to)
  const move = moves.length === 0 ? [] : [{ move: Object.fromEntries(moves) as Step }]
  return [...move, { pick: ['rows', 'total'] }]
}

function statusStep(seen: BackendEnvelope | undefined, all: BackendEnvelope | undefined): Step[] {
  if (seen === undefined) return []
  const { code, message } = seen
  const ok = all?.code === code ? [...new Set([...all.ok, ...seen.ok])] : seen.ok
  const text = message ?? (all?.code === code ? all.message : undefined)
  return [{ status: { path: code, ok, ...(text !== undefined && { message: text }) } }]
}

const dataNames = [/^(data|result|content|payload|body|value|response)$/i]

/** The member with the value, in a response with an envelope. */
function dataPathOf(body: Json, envelope: BackendEnvelope | undefined): string | undefined {
  if (envelope === undefined) return undefined
  return firstNamed(directMembers(body), dataNames, isRecord)?.path
}

function mostCommon(texts: readonly string[]): string | undefined {
  const counts = Map.groupBy(texts, text => text)
  const [first] = [...counts].toSorted(([, left], [, right]) => right.length - left.length)
  return first?.[0]
}

/** Tests of the config: each route needs a session, and reaches its path at the back-end. */
function expectationsOf({ routes }: Findings): Record<string, Step> {
  const expectations = routes.flatMap(({ name, publicPath, path, response, list, envelope }) => {
    const request = `GET ${publicPath}`
    const answer = exampleOf(response.body, {
      ...(envelope !== undefined && { code: envelope.code }),
      ...(list?.total !== undefined && { total: list.total })
    })
    const seen = {
      request,
      roles: [],
      answer,
      status: 200,
      upstream: 'backend',
      upstreamPath: path
    }
    return [
      [`${name}-needs-sign-in`, { request, status: 401 }],
      [name, seen]
    ] as Array<[string, Step]>
  })
  return Object.fromEntries(expectations)
}
