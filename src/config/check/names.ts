/** A name in the wrong key lets clients forge it, or sends a token where it must not go. */
import { builtByGateway, connectionBound, refusedFamilies } from '../schema/header-names.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import { knownBrowserCookie } from '../schema/limits.ts'
import { ownMember, type Path } from '../schema/node.ts'
import { opsCookie } from '../schema/server.ts'
import { credentialOf, tokenHeaderOf, type UpstreamConfig } from '../schema/routes.ts'
import { nameOfCookie, sealedCookiesOf } from '../schema/route.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'

const isOwn = 'is set by the gateway itself: remove it'
const isOwnCookie = 'is a cookie of the gateway itself: take another one'
const isForgeable = 'clients could forge it'
const tokenFault = (key: string) =>
  `is in \`envelope.${key}\` of gateway.yaml, so what a client sends in it is dropped: it may be ` +
  'the real token of another user. Remove it here, or there if the console sends no token in it'

/** The kinds of names, and what is wrong with one where its kind is not taken. */
const faults = {
  illegal: 'is no name of a header',
  connection: isOwn,
  authorization: isOwn,
  gateway: isOwn,
  /** Of the body of a request, or of what is taken as a response. */
  body: isOwn,
  preference: 'has a meaning in HTTP itself: take another one',
  identity: `is a header of \`identity\`: ${isForgeable}`,
  trusted:
    'is a header that back-ends trust as set by a proxy (see `passHeaders` of routes): ' +
    isForgeable,
  tokenHeader: tokenFault('tokenHeaders'),
  credential: 'carries the credential of this upstream: remove it',
  fixed: 'is among its fixed `headers`: remove one of them',
  gatewayCookie: isOwnCookie,
  consoleCookie: isOwnCookie,
  tokenCookie: tokenFault('tokenCookies'),
  sessionCookie: 'is in `cookies`, the back-end’s session: clients could choose it',
  tokenParameter: tokenFault('tokenQuery')
}

type Kind = keyof typeof faults

interface Row {
  /** `*` is each member, `KEY` the name of each. */
  readonly at: string
  readonly of: 'header' | 'cookie' | 'parameter'
  /** Beside names that are nobody’s. */
  readonly takes: readonly Kind[]
  /** The name in a value that is no text. */
  readonly nameIn?: (value: never) => string | undefined
}

const written = ['identity', 'trusted', 'tokenHeader'] as const
const sent = ['credential', 'fixed'] as const
const chosen = ['authorization', 'body', 'preference', 'trusted'] as const
const reopened = 'routes.*.passHeaders.*'

const rows: readonly Row[] = [
  { at: 'identity.*', of: 'header', takes: written },
  { at: 'envelope.tokenHeaders.*', of: 'header', takes: ['authorization', ...written] },
  { at: 'envelope.tokenCookies.*', of: 'cookie', takes: ['tokenCookie'] },
  { at: 'session.cookie.name', of: 'cookie', takes: ['consoleCookie', 'tokenCookie'] },
  { at: 'upstreams.*.passHeaders.*', of: 'header', takes: ['body', 'preference', ...sent] },
  {
    at: 'upstreams.*.credential',
    of: 'header',
    takes: ['authorization', 'trusted', 'tokenHeader', ...sent],
    nameIn: (credential: UpstreamConfig['credential']) => tokenHeaderOf(credentialOf(credential).as)
  },
  { at: 'upstreams.*.credential.csrf.header', of: 'header', takes: ['trusted', 'credential'] },
  { at: 'upstreams.*.headers.KEY', of: 'header', takes: [...chosen, 'tokenHeader', 'fixed'] },
  { at: reopened, of: 'header', takes: chosen },
  { at: 'routes.*.passCookies.*', of: 'cookie', takes: [] },
  { at: 'routes.*.setCookies.*', of: 'cookie', takes: ['tokenCookie'], nameIn: nameOfCookie },
  { at: 'routes.*.query.rename.KEY', of: 'parameter', takes: [] },
  { at: 'routes.*.query.rename.*', of: 'parameter', takes: [] },
  ...['', 'refresh.', 'logout.'].map((call): Row => ({
    at: `login.sources.*.${call}headers.KEY`,
    of: 'header',
    takes: [...chosen, 'gateway', 'identity', 'tokenHeader', ...sent]
  })),
  ...['', 'logout.'].map((call): Row => ({
    at: `upstreams.*.credential.exchange.${call}headers.KEY`,
    of: 'header',
    takes: [...chosen, 'gateway', 'tokenHeader', 'credential']
  })),
  { at: 'login.sources.*.passHeaders.*', of: 'header', takes: ['preference'] },
  { at: 'login.sources.*.passCookies.*', of: 'cookie', takes: [] }
]

function* valuesAt(
  value: unknown,
  [step, ...rest]: readonly string[],
  path: Path = []
): Generator<readonly [path: Path, value: unknown]> {
  if (step === undefined) yield [path, value]
  if (step === undefined || typeof value !== 'object' || value === null) return
  for (const [key, member] of Object.entries(value)) {
    const place = [...path, Array.isArray(value) ? Number(key) : key]
    if (step === 'KEY') yield [place, key]
    else if (step === '*' || step === key) yield* valuesAt(member, rest, place)
  }
}

interface Call extends CheckedConfig {
  readonly upstream?: UpstreamConfig | undefined
  readonly source?: Extract<SourceConfig, { kind: 'upstream-login' }>
}

/** Of a route only an upstream with a token of its own, for which no client may send another. */
function callAt({ gateway, routes }: CheckedConfig, path: Path): Pick<Call, 'upstream' | 'source'> {
  const [section, name, inner] = path
  if (section === 'upstreams') return { upstream: routes.upstreams[String(name)] }
  if (section === 'routes') {
    const { upstream: ofRoute = '' } = routes.routes[String(name)] ?? {}
    const upstream = ownMember(routes.upstreams, ofRoute)
    return upstream && credentialOf(upstream.credential).hasOwnToken ? { upstream } : {}
  }
  const source = section === 'login' ? gateway.login.sources[String(inner)] : undefined
  if (source?.kind !== 'upstream-login') return {}
  return { source, upstream: ownMember(routes.upstreams, source.upstream) }
}

/** Names that a request has by itself; another value would break its framing. */
const framing = new Set(['host', 'content-length'])

function kindOfOwn(name: string): Kind | false {
  if (name === 'authorization') return 'authorization'
  if (connectionBound.has(name) || framing.has(name)) return 'connection'
  if (builtByGateway.has(name)) return 'gateway'
  if (/^(?:content-|transfer-|accept$|accept-encoding$)/.test(name)) return 'body'
  return name.startsWith('accept-') && 'preference'
}

const isAmong = (mapping: object = {}, name: string): boolean =>
  Object.keys(mapping).some(key => key.toLowerCase() === name)

const bareName = (cookie: string): string => cookie.replace(/^__(?:Host|Secure)-/, '')

function credentialHeadersOf({ credential }: UpstreamConfig): Array<string | undefined> {
  const { as, csrf } = credentialOf(credential)
  return [tokenHeaderOf(as), csrf?.header]
}

type KindsOf = (name: string, call: Call, written: string) => ReadonlyArray<Kind | false>

const kindsOf: Readonly<Record<Row['of'], KindsOf>> = {
  header: (name, { gateway, upstream, source }) => [
    !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) && 'illegal',
    kindOfOwn(name),
    Object.values(gateway.identity).includes(name) && 'identity',
    refusedFamilies.test(name) && 'trusted',
    gateway.envelope.tokenHeaders.includes(name) && 'tokenHeader',
    upstream !== undefined && credentialHeadersOf(upstream).includes(name) && 'credential',
    (isAmong(upstream?.headers, name) || isAmong(source?.headers, name)) && 'fixed'
  ],
  cookie: (_, { gateway, routes, source }, name) => [
    [knownBrowserCookie, opsCookie].includes(bareName(name)) && 'gatewayCookie',
    bareName(name) === gateway.session.cookie.name && 'consoleCookie',
    gateway.envelope.tokenCookies.includes(name) && 'tokenCookie',
    // Of a sealed one the back-end gets only what it has set itself.
    source?.cookies.includes(name) === true &&
      !sealedCookiesOf(routes, source.upstream).has(name) &&
      'sessionCookie'
  ],
  parameter: (name, { gateway }) => [
    gateway.envelope.tokenQuery.some(each => each.toLowerCase() === name) && 'tokenParameter'
  ]
}

export function checkNames(config: CheckedConfig, report: Report): void {
  const tree = { ...config.gateway, ...config.routes }
  for (const { at, of, takes, nameIn } of rows) {
    for (const [path, value] of valuesAt(tree, at.split('.'))) {
      const name = nameIn === undefined ? value : nameIn(value as never)
      if (typeof name !== 'string') continue
      const kinds = kindsOf[of](name.toLowerCase(), { ...config, ...callAt(config, path) }, name)
      const wrong = kinds.find(kind => kind !== false && !takes.includes(kind))
      if (wrong) report(path, `"${name}" ${faults[wrong]}`)
      else if (at === reopened) reportReopened(path, name, report)
    }
  }
}

/** `passHeaders` of a route is for names that do not pass by themselves. */
function reportReopened(path: Path, name: string, report: Report): void {
  if (name === 'authorization') return
  if (!refusedFamilies.test(name)) {
    return report(path, `"${name}" passes anyway: remove it here`)
  }
  report.warn(path, `clients can forge "${name}", which back-ends trust as set by a proxy`)
}
