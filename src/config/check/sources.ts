import type { CheckedConfig, Report, Rule } from '../schema/config.ts'
import { isLoopback } from '../schema/host-port.ts'
import { keySource, type LdapConfig, type OidcConfig } from '../schema/login.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import { credentialOf } from '../schema/routes.ts'

export const checkSources: Rule = (config, report) => {
  checkIdentities(config, report)
  for (const [name, source] of Object.entries(config.gateway.login.sources)) {
    const ofSource = report.at('login', 'sources', name)
    if (name === keySource) ofSource([], 'is the name of keys for scripts; choose another')
    if (source.kind === 'ldap') checkDirectory(source, ofSource)
    if (source.kind === 'oidc') checkOidc(source, ofSource)
    if (source.kind !== 'upstream-login') continue
    const { sessionEnded } = config.routes.upstreams[source.upstream] ?? {}
    checkTokens(source, sessionEnded !== undefined, ofSource)
    checkUnused(name, source, config, ofSource)
    checkShown(source, config, report)
  }
}

/** `init` writes it where it does not know the secret. */
const unknown = 'TODO'
const stillUnknown = 'is still TODO: nobody can sign in here'

const isTransferable = (id: string) =>
  `"${id}" may change, or go to another person, who would then be taken for this one`

const mutable = /^(?:uid|cn|sn|mail|displayname|samaccountname|userprincipalname)$/i

function checkDirectory({ urls, startTls, user, bind }: LdapConfig, report: Report): void {
  if (bind.password === unknown) report.warn(['bind', 'password'], stillUnknown)
  const where = ['user', 'id']
  const id = user.id.toLowerCase()
  if (mutable.test(id) || id === user.username.toLowerCase()) report(where, isTransferable(user.id))
  if (id === 'objectguid' && user.id !== 'objectGUID') {
    report(where, 'has to be spelled objectGUID, to be read as binary')
  }
  const plain = urls.find(url => url.startsWith('ldap:') && !isLoopback(new URL(url).hostname))
  if (startTls || plain === undefined) return
  report.warn(['startTls'], `passwords cross the network in clear, to ${plain}: use ldaps://`)
}

/** Claims that change, or may go to another person (OpenID Connect Core 1.0 §5.7). */
const mutableClaims =
  /(?:^|\.)(?:email|preferred_username|user_?name|upn|unique_name|name|nickname|phone_number)$/i

function checkOidc(source: OidcConfig, report: Report): void {
  const { issuer, user, audience, clientId, clientSecret } = source
  if (clientSecret === unknown) report.warn(['clientSecret'], stillUnknown)
  if (audience === clientId) {
    report(['audience'], 'is that of ID tokens, which are no access tokens')
  }
  const { protocol, hostname } = new URL(issuer)
  if (protocol !== 'https:' && !isLoopback(hostname)) {
    report(['issuer'], 'has to be https: whoever is in between could sign in as anyone')
  }
  if (mutableClaims.test(user.id)) report(['user', 'id'], isTransferable(user.id))
}

type UpstreamLogin = Extract<SourceConfig, { kind: 'upstream-login' }>

const namesToken = /(?:^|[a-z_.-])(?:token|jwt)$/i

/** Identities go to the browser and to upstreams. */
function checkTokens(source: UpstreamLogin, tellsEnd: boolean, report: Report): void {
  const { user, token, refreshToken, refresh, expires } = source
  if (refresh !== undefined && expires === undefined && !(refreshToken && tellsEnd)) {
    const message =
      'needs `expires`, the time when the token is renewed, or `refreshToken`, and ' +
      '`sessionEnded` of the upstream, which tells that it is over'
    report(['refresh'], message)
  }
  if (refresh !== undefined && token === undefined) {
    report(['refresh'], 'needs `token`, the token to renew')
  }
  if (refresh === undefined && expires !== undefined) {
    const message = 'ends no session without `refresh`: set `sessionEnded` or `session.absolute`'
    report.warn(['expires'], message)
  }
  const { roleMap: _, from, ...members } = user
  // The response of `from` is another one than that with the token.
  const secrets = from === undefined ? [token, refreshToken] : []
  for (const [key, path = ''] of Object.entries(members)) {
    const isWithin = secrets.some(
      secret => typeof secret === 'string' && `${secret}.`.startsWith(`${path}.`)
    )
    if (!isWithin && !namesToken.test(path)) continue
    report(['user', key], `"${path}" is or holds a token, which all upstreams would see`)
  }
}

/** Not where an upstream knows its users by their own token or cookie. */
function checkIdentities({ gateway, routes }: CheckedConfig, report: Report): void {
  const { identity, login } = gateway
  if (Object.keys(login.sources).length < 2 || identity.source || identity.prefix) return
  const receiver = Object.entries(routes.upstreams).find(
    ([, { identity: isTold, credential }]) => isTold && credentialOf(credential).as === 'none'
  )
  if (receiver === undefined) return
  const message =
    `two sources may give two people one id, and upstreams.${receiver[0]} gets only the id: ` +
    'set `source: x-user-source` or `prefix: true`'
  report(['identity'], message)
}

type Sent = 'cookie' | 'token'

/** An upstream with a token of its own gets nothing of a source; others its cookie or token. */
export function sentBy({ as, hasOwnToken, csrf }: ReturnType<typeof credentialOf>): Sent[] {
  if (as === 'none' || hasOwnToken) return []
  if (as !== 'cookies') return ['token']
  return csrf !== undefined && csrf.cookie === undefined ? ['cookie', 'token'] : ['cookie']
}

export function gives(source: SourceConfig | undefined, what: Sent): boolean {
  if (source?.kind === 'oidc') return what === 'token'
  if (source?.kind !== 'upstream-login') return false
  return what === 'cookie' ? source.cookies.length > 0 : source.token !== undefined
}

function checkUnused(
  name: string,
  source: UpstreamLogin,
  { routes }: CheckedConfig,
  { warn }: Report
): void {
  const credentials = Object.values(routes.upstreams).map(each => credentialOf(each.credential))
  for (const what of ['token', 'cookie'] as const) {
    // Without `from`, the only source with such a credential is meant.
    const isSent = credentials.some(
      each => sentBy(each).includes(what) && (each.from ?? name) === name
    )
    if (isSent || !gives(source, what)) continue
    const message = `no upstream has a \`credential\` that sends the ${what} of this source`
    warn([what === 'cookie' ? 'cookies' : what], message)
  }
}

/** The gateway keeps the back-end's session itself. */
function checkShown(source: UpstreamLogin, { routes }: CheckedConfig, { warn }: Report): void {
  for (const [name, { upstream, setCookies = [] }] of Object.entries(routes.routes)) {
    const shown = source.cookies.find(each => setCookies.includes(each))
    if (shown === undefined || source.upstream !== upstream) continue
    const message = `"${shown}" would show the browser the back-end’s session: set \`sealed: true\``
    warn(['routes', name, 'setCookies', setCookies.indexOf(shown)], message)
  }
}
