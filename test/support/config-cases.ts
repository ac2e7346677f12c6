/** Tables of configs: parts of the files of a production config that is sound, and what is said of them. */
import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { testAuthority } from './authority.ts'
import { knownHash, merged, type Texts } from './config-files.ts'

type Tree = Record<string, unknown>

export interface Case {
  readonly gateway?: Tree
  readonly routes?: Tree
  readonly limits?: Tree
  /** A route `r`. */
  readonly route?: object
  readonly texts?: Texts
  readonly env?: Readonly<Record<string, string>>
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

const files: Texts = { ...pems, 'a.js': '', 'no.pem': 'no certificate' }

/** The files of a case; each folder has some more that cases name. */
export function textsOf({ gateway, routes, route, limits, texts = {} }: Case): Texts {
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

export const environmentOf = ({ env }: Case) => ({
  LONG: 'x'.repeat(32),
  SHORT: 'x'.repeat(31),
  ...env
})

/** The case with a value at a place; without a place the value is parts of a case. */
export function having(given: Case, at: string | undefined, value: unknown): Case {
  const isFile = at !== undefined && /\.(?:yaml|pem)$/.test(at)
  const path = isFile ? ['texts', at] : (at?.split('.') ?? [])
  return merged(
    given,
    path.reduceRight((inner, key) => ({ [key]: inner }), value)
  ) as Case
}

/** The expected text, in which `…` is any text, where it fits: so that only what differs is shown. */
export function asExpected(found: string, expected: unknown): string {
  if (typeof expected !== 'string') return found
  const parts = expected.split('…').map(part => RegExp.escape(part))
  return new RegExp(`^${parts.join('.*')}$`, 's').test(found) ? expected : found
}

/** The cases of YAML files. With `each` there is one for each text. */
export function casesIn<Row>(files: string): Array<Row & { readonly title: string }> {
  type Rule = Row & { readonly title: string; readonly each?: readonly string[] }
  const rules = globSync(files).flatMap(file => parse(readFileSync(file, 'utf8')) as Rule[])
  return rules.flatMap(({ each = [''], ...rule }) =>
    each.map(text => {
      const quoted = JSON.stringify(text).slice(1, -1)
      return JSON.parse(JSON.stringify(rule).replaceAll('{each}', () => quoted)) as Rule
    })
  )
}
