import type { CheckedConfig, Report, Rule } from '../schema/config.ts'
import { isLoopback } from '../schema/host-port.ts'
import { keySource, type LdapConfig, type OidcConfig } from '../schema/login.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import { credentialOf } from '../schema/routes.ts'

export const checkSources: Rule = (config, report) => {
  checkIdentities(config, report)
  for (const [name, source] of Object.entries(config.gateway.login.sources)) {
    const ofSource = report.at('login', 'sources', name)
    checkSecret(source, ofSource)
    if (name === keySource) ofSource([], 'is the name of keys for scripts; choose another')
    if (source.kind === 'ldap') checkDirectory(source, ofSource)
    if (source.kind === 'oidc') checkOidc(source, ofSource)
    if (source.kind === 'upstream-login') {
      const { sessionEnded } = config.routes.upstreams[source.upstream] ?? {}
      checkTokens(source, sessionEnded !== undefined, ofSource)
    }
  }
  checkUnused(config, report)
  checkShown(config, report)
}

/** `init` writes the word where it does not know the secret. */
function checkSecret(source: SourceConfig, { warn }: Report): void {
  const message = 'is still TODO: nobody can sign in here'
  if (source.kind === 'oidc' && source.clientSecret === 'TODO') {
    warn(['clientSecret'], message)
  }
  if (source.kind === 'ldap' && source.bind.password === 'TODO') {
    warn(['bind', 'password'], message)
  }
}

const isTransferable = (id: string) =>
  `"${id}" may change, or go to another person, who would then be taken for this one`

const mutable = /^(?:uid|cn|sn|mail|displayname|samaccountname|userprincipalname)$/i

function checkDirectory({ urls, startTls, user }: LdapConfig, report: Report): void {
  const where = ['user', 'id']
  const id = user.id.toLowerCase()
  if (mutable.test(id) || id === user.username.toLowerCase()) report(where, isTransferable(user.id))
  if (id === 'objectguid' && user.id !== 'objectGUID') {
    report(where, 'has to be spelled objectGUID, to be read as binary')
  }
  const plain = urls.find(url => url.startsWith('ldap:') && !isLoopback(new URL(url).hostname))
  if (startTls || plain === undefined) return
  const message = `passwords cross the network in clear, to ${plain}: use ldaps:// or StartTLS`
  report.warn(['startTls'], message)
}

/** Claims that change, or may go to another person (OpenID Connect Core 1.0 §5.7). */
const mutableClaims =
  /(?:^|\.)(?:email|preferred_username|user_?name|upn|unique_name|name|nickname|phone_number)$/i

function checkOidc(source: OidcConfig, report: Report): void {
  const { issuer, user, audience, clientId } = source
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
    const message =
      'ends no session: it says when to renew a token, and there is no `refresh`. ' +
      'Set `sessionEnded` of the upstream, or `session.absolute` below it'
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
    const message = `"${path}" is or holds a token, which the browser and all upstreams would see`
    report(['user', key], message)
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
    `two credential sources may give two people the same id, and upstreams.${receiver[0]} gets ` +
    'only the id; set `source: x-user-source` or `prefix: true`'
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

function checkUnused({ gateway, routes }: CheckedConfig, { warn }: Report): void {
  const credentials = Object.values(routes.upstreams).map(each => credentialOf(each.credential))
  for (const [name, source] of Object.entries(gateway.login.sources)) {
    // An OpenID provider always gives a token.
    if (source.kind !== 'upstream-login') continue
    for (const what of ['token', 'cookie'] as const) {
      // Without `from`, the only source with such a credential is meant.
      const isSent = credentials.some(
        each => sentBy(each).includes(what) && (each.from ?? name) === name
      )
      if (isSent || !gives(source, what)) continue
      const message = `no upstream has a \`credential\` that sends the ${what} of this source`
      warn(['login', 'sources', name, what === 'cookie' ? 'cookies' : what], message)
    }
  }
}

/** The gateway keeps the back-end's session itself. */
function checkShown({ gateway, routes }: CheckedConfig, { warn }: Report): void {
  for (const [name, { upstream, setCookies = [] }] of Object.entries(routes.routes)) {
    for (const source of Object.values(gateway.login.sources)) {
      if (source.kind !== 'upstream-login' || source.upstream !== upstream) continue
      const shown = source.cookies.find(each => setCookies.includes(each))
      if (shown === undefined) continue
      const message =
        `"${shown}" is in \`cookies\` of the sign-in: the browser would hold the back-end’s ` +
        'session. Remove it, or set `sealed: true`'
      warn(['routes', name, 'setCookies', setCookies.indexOf(shown)], message)
    }
  }
}
