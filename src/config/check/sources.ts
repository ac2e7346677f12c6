/** Rules for credential sources: their users stay distinct, and who gives a token or cookie to whom. */
import type { CheckedConfig, Report } from '../schema/config.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import { isLoopback } from '../schema/host-port.ts'
import { keySource, type LdapConfig, type OidcConfig } from '../schema/login.ts'
import type { Path } from '../schema/node.ts'
import { credentialOf } from '../schema/routes.ts'
import { plainCookies } from '../schema/route.ts'

export function checkSources(config: CheckedConfig, report: Report): void {
  checkIdentityFields(config, report)
  for (const [name, source] of Object.entries(config.gateway.login.sources)) {
    const place = ['login', 'sources', name]
    checkSecret(source, place, report)
    if (source.kind === 'ldap') checkDirectory(source, place, report)
    if (name === keySource) report(place, 'is the name of keys for scripts; choose another')
    if (source.kind === 'oidc') checkOidc(source, place, report)
    if (source.kind !== 'upstream-login') continue
    checkRefresh(source, place, report)
    checkTokens(source, place, report)
  }
  checkCredentials(config, report)
  checkUnused(config, report)
  checkShown(config, report)
}

/** `init` writes the word where only an operator knows the secret. */
function checkSecret(source: SourceConfig, at: Path, report: Report): void {
  const message = 'is still TODO: nobody can sign in here'
  if (source.kind === 'oidc' && source.clientSecret === 'TODO') {
    report([...at, 'clientSecret'], message, { warning: true })
  }
  if (source.kind === 'ldap' && source.bind.password === 'TODO') {
    report([...at, 'bind', 'password'], message, { warning: true })
  }
}

type UpstreamLogin = Extract<SourceConfig, { kind: 'upstream-login' }>

function checkRefresh({ refresh, expires, token }: UpstreamLogin, at: Path, report: Report): void {
  if (refresh === undefined) return
  const place = [...at, 'refresh']
  if (expires === undefined) report(place, 'needs `expires`, the time when the token is renewed')
  if (token === undefined) report(place, 'needs `token`, the token to renew')
}

/** Attributes that can be given to another person later, who would then have the same id. */
const mutable = /^(?:uid|cn|sn|mail|displayname|samaccountname|userprincipalname)$/i

function checkDirectory({ urls, startTls, user }: LdapConfig, at: Path, report: Report): void {
  const id = user.id.toLowerCase()
  if (mutable.test(id) || id === user.username.toLowerCase()) {
    const message = `"${user.id}" can change, or be given to another person: name one that never is`
    report([...at, 'user', 'id'], message)
  }
  if (id === 'objectguid' && user.id !== 'objectGUID') {
    report([...at, 'user', 'id'], 'has to be spelled objectGUID, to be read as binary')
  }
  const isPlain = (url: string) =>
    url.startsWith('ldap:') && !isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ''))
  const plain = startTls ? undefined : urls.find(isPlain)
  if (plain === undefined) return
  const message = `passwords cross the network in clear, to ${plain}: use ldaps:// or StartTLS`
  report([...at, 'startTls'], message, { warning: true })
}

/** Claims that change, or may go to another person (OpenID Connect Core 1.0 §5.7). */
const mutableClaims =
  /^(?:email|preferred_username|username|user_?name|upn|unique_name|name|nickname|phone_number)$/i

function checkOidc(source: OidcConfig, at: Path, report: Report): void {
  const { issuer, user, audience, clientId, path = '' } = source
  if (audience === clientId) {
    report([...at, 'audience'], 'is that of ID tokens, which are no access tokens')
  }
  if (path.endsWith('/')) report([...at, 'path'], 'must not end with a slash: others are below it')
  const { protocol, hostname } = new URL(issuer)
  if (protocol !== 'https:' && !isLoopback(hostname)) {
    report([...at, 'issuer'], 'has to be https: whoever is in between could sign in as anyone')
  }
  if (!mutableClaims.test(user.id.split('.').at(-1) ?? '')) return
  const message =
    `"${user.id}" may change, or go to another person, who would then be taken for this one: ` +
    'name a claim that never does, such as `sub`'
  report([...at, 'user', 'id'], message)
}

const namesToken = /(?:^|[a-z_-])(?:token|jwt)$/i

/** Identities go to the browser and to upstreams, so their members must not hold a token. */
function checkTokens({ user, token, refreshToken }: UpstreamLogin, at: Path, report: Report): void {
  const { roleMap: _, from, ...members } = user
  for (const [key, path] of Object.entries(members)) {
    if (path === undefined) continue
    const isWithin = (secret?: string) =>
      secret !== undefined && `${secret}.`.startsWith(`${path}.`)
    const paths = [typeof token === 'object' ? undefined : token, refreshToken]
    // The response of `from` is another one than that with the token.
    const secret = from === undefined ? paths.find(isWithin) : undefined
    if (secret === undefined && !namesToken.test(path.split('.').at(-1) ?? '')) continue
    const isItself = secret === undefined || secret === path
    const what = isItself ? 'is the back-end’s token' : `holds the back-end’s token (${secret})`
    const message =
      `"${path}" ${what}, which the browser and every upstream would see; ` +
      'name a member without it'
    report([...at, 'user', key], message)
  }
}

/** Not where an upstream knows its users by their own token or cookie. */
function checkIdentityFields({ gateway, routes: { upstreams } }: CheckedConfig, report: Report) {
  const {
    identity,
    login: { sources }
  } = gateway
  if (Object.keys(sources).length < 2 || identity.source !== undefined || identity.prefix) return
  const receiver = Object.entries(upstreams).find(
    ([, { identity: isTold, credential }]) => isTold && credentialOf(credential).as === 'none'
  )
  if (receiver === undefined) return
  const message =
    'two credential sources may give two people the same id, and ' +
    `upstreams.${receiver[0]} gets only the id; ` +
    'set `source: x-user-source` or `prefix: true`'
  report(['identity'], message)
}

const whatOf = (as: string) => (as === 'cookies' ? 'cookie' : 'token')

function gives(source: SourceConfig | undefined, what: 'cookie' | 'token'): boolean {
  if (source?.kind === 'oidc') return what === 'token'
  if (source?.kind !== 'upstream-login') return false
  return what === 'cookie' ? source.cookies.length > 0 : source.token !== undefined
}

function checkCredentials({ gateway, routes }: CheckedConfig, report: Report): void {
  const { sources } = gateway.login
  for (const [name, upstream] of Object.entries(routes.upstreams)) {
    const { as, from, scheme, hasOwnToken } = credentialOf(upstream.credential)
    const place = ['upstreams', name, 'credential']
    if (as === 'none' || hasOwnToken) continue
    if (as === 'cookies' && scheme !== undefined) {
      report([...place, 'scheme'], 'cookies have no scheme: leave it out')
    }
    const what = whatOf(as)
    const giving = Object.keys(sources).filter(source => gives(sources[source], what))
    const isKnown = from !== undefined && Object.hasOwn(sources, from)
    if (isKnown && !giving.includes(from)) {
      report([...place, 'from'], `the source "${from}" gives no ${what}`)
    }
    if (from !== undefined) continue
    if (giving.length === 0) {
      const message = `no source of login.sources gives a ${what}: none is ever sent`
      report(place, message, { warning: true })
    } else if (giving.length > 1) {
      const example = `{ from: ${giving[0]}, as: ${as} }`
      const several = `${giving.join(' and ')} each give a ${what}`
      report(place, `${several}: name the source for this upstream, such as ${example}`)
    }
  }
}

/** Warns of tokens that no upstream gets: the operator expects them to be sent. */
function checkUnused({ gateway, routes }: CheckedConfig, report: Report): void {
  const credentials = Object.values(routes.upstreams)
    .map(({ credential }) => credentialOf(credential))
    .filter(({ as, hasOwnToken }) => as !== 'none' && !hasOwnToken)
  for (const [name, source] of Object.entries(gateway.login.sources)) {
    // A provider always gives one.
    if (source.kind === 'oidc') continue
    for (const what of ['token', 'cookie'] as const) {
      // Without `from`, the only source with such a credential is meant.
      const isSent = credentials.some(({ as, from = name }) => whatOf(as) === what && from === name)
      if (isSent || !gives(source, what)) continue
      const [key, sent] = what === 'token' ? ['token', 'the token'] : ['cookies', 'cookies']
      const message = `no upstream has a \`credential\` that sends ${sent}, so no back-end gets it`
      report(['login', 'sources', name, key], message, { warning: true })
    }
  }
}

/** The gateway keeps the back-end's session itself: no browser needs its cookie. */
function checkShown({ gateway, routes }: CheckedConfig, report: Report): void {
  for (const [name, { upstream, setCookies = [] }] of Object.entries(routes.routes)) {
    for (const source of Object.values(gateway.login.sources)) {
      if (source.kind !== 'upstream-login' || source.upstream !== upstream) continue
      const shown = plainCookies(setCookies).find(cookie => source.cookies.includes(cookie))
      if (shown === undefined) continue
      const message =
        `"${shown}" is in \`cookies\` of the sign-in: the browser would hold the back-end’s ` +
        'session. Remove it, or set `sealed: true`'
      const place = ['routes', name, 'setCookies', setCookies.indexOf(shown)]
      report(place, message, { warning: true })
    }
  }
}
