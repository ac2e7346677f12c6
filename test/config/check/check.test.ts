/** What `check` says of config files: the cases of the tables beside this file. */
import { globSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../../../src/config/read/load.ts'
import { testAuthority } from '../../support/authority.ts'
import { faultsOf, knownHash, type Texts, textFolder } from '../../support/config-files.ts'

type Tree = Record<string, unknown>

/** Parts of the files of a production config that is sound; see rules.yaml. */
interface Case {
  readonly gateway?: Tree
  readonly routes?: Tree
  readonly limits?: Tree
  /** A route `r`. */
  readonly route?: object
  readonly texts?: Texts
  readonly env?: Readonly<Record<string, string>>
}

/** What stands at the place `at`, and what is said or loaded then. */
type Row = readonly [value: unknown, ...expected: Array<string | object>]

interface Rule extends Case {
  readonly title: string
  readonly each?: readonly string[]
  readonly faults?: readonly string[]
  readonly at?: string
  readonly rows?: readonly Row[]
}

const upstreams = { b: { url: 'http://backend.internal:81' } }
const pems = Object.fromEntries(
  ['first', 'second'].flatMap(name => {
    const { certificate, key } = testAuthority(t.after)
    return [
      [`${name}.pem`, readFileSync(certificate, 'utf8')],
      [`${name}.key`, readFileSync(key, 'utf8')]
    ] as const
  })
)
const known: Readonly<Record<string, string>> = {
  ...pems,
  'hash': knownHash,
  'first.pem of Windows': pems['first.pem']?.replaceAll('\n', '\r\n') ?? ''
}
const filled = (text: string) =>
  text.replaceAll(/<((?:first|second|hash)[^>]*)>/g, (all, name: string) => known[name] ?? all)

/** In each folder, for cases that name them. */
const files: Texts = { ...pems, 'a.js': '', 'no.pem': 'no certificate' }

function textsOf({ gateway, routes, route, limits, texts = {} }: Case): Texts {
  const { server = { hosts: ['console.example.com'] } } = (gateway ?? {}) as { server?: Tree }
  const all = {
    ...(route && { r: { path: '/api/r', upstream: 'b', ...route } }),
    ...(routes?.['routes'] as Tree | undefined)
  }
  return {
    ...files,
    'gateway.yaml': stringify({
      ...gateway,
      server: { trustedProxies: ['10.0.0.0/8'], ...server }
    }),
    ...((routes ?? route) && {
      'routes.yaml': stringify({ upstreams, ...routes, routes: all })
    }),
    ...(limits && { 'limits.yaml': stringify(limits) }),
    ...Object.fromEntries(
      Object.entries(texts).map(([name, text]) => [
        name,
        typeof text === 'string' ? filled(text) : text
      ])
    )
  }
}

const environmentOf = ({ env }: Case) => ({ LONG: 'x'.repeat(32), SHORT: 'x'.repeat(31), ...env })

/** Each fault and warning; of files that are given as text the faults, with their lines. */
function said(t: Test, given: Case): string[] {
  const found = faultsOf(textFolder(t.after, textsOf(given)), environmentOf(given))
  return given.texts === undefined
    ? found.map(line => line.replace(/^(\w+\.yaml):\d+/, '$1'))
    : found.filter(line => !line.includes(': warning: '))
}

/** The case with a value at a place; without a place the value is parts of a case. */
function having(given: Case, at: string | undefined, value: unknown): Case {
  const isFile = at !== undefined && /\.(?:yaml|pem)$/.test(at)
  const path = isFile ? ['texts', at] : (at?.split('.') ?? [])
  return merged(
    given,
    path.reduceRight((inner, key) => ({ [key]: inner }), value)
  ) as Case
}

const merged = (base: unknown, over: unknown): unknown => {
  if (!isTree(base) || !isTree(over)) return over
  const members = Object.entries(over).map(([key, value]) => [key, merged(base[key], value)])
  return { ...base, ...Object.fromEntries(members) }
}

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The expected text, in which `…` is any text, where it fits: so that only what differs is shown. */
function asExpected(found: string, expected: unknown): string {
  if (typeof expected !== 'string') return found
  const parts = expected.split('…').map(part => RegExp.escape(part))
  return new RegExp(`^${parts.join('.*')}$`, 's').test(found) ? expected : found
}

function tryRow(t: Test, rule: Rule, [value, ...expected]: Row): void {
  const given = having(rule, rule.at, value)
  const title = JSON.stringify(value)
  const [loaded] = expected
  if (typeof loaded === 'object') {
    t.match(loadConfig(textFolder(t.after, textsOf(given)), environmentOf(given)), loaded, title)
    return
  }
  const found = said(t, given).map((line, index) => asExpected(line, expected[index]))
  t.same(found, expected, title)
}

const rules = globSync('test/config/check/*.yaml').flatMap(
  file => parse(readFileSync(file, 'utf8')) as Rule[]
)
/** With `each` there is one for each text. */
const cases = rules.flatMap(({ each = [''], ...rule }) =>
  each.map(text => {
    const quoted = JSON.stringify(text).slice(1, -1)
    return JSON.parse(JSON.stringify(rule).replaceAll('{each}', () => quoted)) as Rule
  })
)

for (const rule of cases) {
  t.test(rule.title, async t => {
    const { rows, faults = [] } = rule
    if (rows === undefined) t.same(said(t, rule), faults)
    for (const row of rows ?? []) tryRow(t, rule, row)
  })
}

t.test('an upstream has a hundred addresses at most', async t => {
  const urls = Array.from({ length: 101 }, (_, index) => `http://b${index}`)
  t.same(said(t, { routes: { upstreams: { b: { urls } } }, route: {} }), [
    'routes.yaml upstreams.b.urls: expected at most 100 items, found 101'
  ])
})

t.test('no config changes what objects are born with', async t => {
  t.same([Object.keys(Object.prototype), ({} as Tree)['polluted']], [[], undefined])
})
