/** Rules for credential sources: whoever is told of a user has to tell the sources apart. */
import type { Report } from './report.ts'
import { type GatewayConfig, sourceName } from '../schema/gateway.ts'
import type { RoutesConfig } from '../schema/routes.ts'

interface Checked {
  readonly gateway: GatewayConfig
  readonly routes: RoutesConfig
}

export function checkSources(config: Checked, report: Report): void {
  checkRefresh(config, report)
  checkNames(config, report)
  checkIdentityFields(config, report)
  checkTokens(config, report)
}

function checkRefresh({ gateway: { login } }: Checked, report: Report): void {
  login.sources.forEach((source, index) => {
    if (source.kind !== 'upstream-login' || source.refresh === undefined) return
    const place = ['login', 'sources', index, 'refresh']
    if (source.expires === undefined) {
      report('gateway', place, 'needs `expires`, which tells when to renew the token')
    }
    if (source.token === undefined) report('gateway', place, 'needs `token`, the token to renew')
  })
}

/** Last names of paths that only a token has. */
const namesToken = /(?:^|[a-z_-])(?:token|jwt)$/i

/** What tells who a user is goes to the browser and into headers; a token must not. */
function checkTokens(
  {
    gateway: {
      login: { sources }
    }
  }: Checked,
  report: Report
): void {
  sources.forEach((source, index) => {
    if (source.kind !== 'upstream-login') return
    const {
      user: { roleMap: _, ...user },
      token,
      refreshToken
    } = source
    for (const [key, path] of Object.entries(user)) {
      if (path === undefined) continue
      const isWithin = (secret?: string) =>
        secret !== undefined && `${secret}.`.startsWith(`${path}.`)
      const secret = [token, refreshToken].find(isWithin)
      const isToken = secret !== undefined || namesToken.test(path.split('.').at(-1) ?? '')
      if (!isToken) continue
      const isItself = secret === undefined || secret === path
      const what = isItself ? 'is the back-end’s token' : `holds the back-end’s token (${secret})`
      const message =
        `"${path}" ${what}, which the browser and every upstream would see; ` +
        'name a member without it'
      report('gateway', ['login', 'sources', index, 'user', key], message)
    }
  })
}

function checkNames(
  {
    gateway: {
      login: { sources }
    }
  }: Checked,
  report: Report
): void {
  const names = sources.map(sourceName)
  names.forEach((name, index) => {
    const first = names.indexOf(name)
    if (first === index) return
    const hasOwn = sources[index]?.name !== undefined
    const where = ['login', 'sources', index, ...(hasOwn ? ['name'] : [])]
    const clash = `login.sources.${first} has the name "${name}" too`
    report(
      'gateway',
      where,
      `${clash}, so that their users would be one; give this one another \`name\``
    )
  })
}

/** Two sources may give one id to two people, whom an upstream takes for one. */
function checkIdentityFields({ gateway, routes: { upstreams } }: Checked, report: Report): void {
  const {
    identity,
    login: { sources }
  } = gateway
  if (sources.length < 2 || identity.source !== undefined || identity.prefix) return
  const told = Object.entries(upstreams).find(([, upstream]) => upstream.identity)
  if (told === undefined) return
  const message =
    'two credential sources may give one id to two people, and ' +
    `upstreams.${told[0]} is told the id alone; ` +
    'set `source: x-user-source` or `prefix: true`'
  report('gateway', ['identity'], message)
}
