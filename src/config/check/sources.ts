/** Rules for credential sources: users of different sources must stay distinct for upstreams. */
import type { CheckedConfig, Report } from './report.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import type { Path } from '../schema/node.ts'
import { credentialOf } from '../schema/routes.ts'

type SourcesConfig = Pick<CheckedConfig, 'gateway' | 'routes'>

export function checkSources(config: SourcesConfig, report: Report): void {
  checkIdentityFields(config, report)
  for (const [name, source] of Object.entries(config.gateway.login.sources)) {
    if (source.kind !== 'upstream-login') continue
    const place = ['login', 'sources', name]
    checkRefresh(source, place, report)
    checkTokens(source, place, report)
  }
}

type UpstreamLogin = Extract<SourceConfig, { kind: 'upstream-login' }>

function checkRefresh({ refresh, expires, token }: UpstreamLogin, at: Path, report: Report): void {
  if (refresh === undefined) return
  const place = [...at, 'refresh']
  if (expires === undefined) report(place, 'needs `expires`, the time when the token is renewed')
  if (token === undefined) report(place, 'needs `token`, the token to renew')
}

/** Matches the last member of a path to a token. */
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

/**
 * Two sources may give two people the same id, and an upstream would take them for one; not where
 * it knows its users by their own token or cookie.
 */
function checkIdentityFields(
  { gateway, routes: { upstreams } }: SourcesConfig,
  report: Report
): void {
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
