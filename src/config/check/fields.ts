/** Rules for the request headers of clients that are passed to upstreams. */
import type { CheckedConfig, Report } from './report.ts'
import {
  builtByGateway,
  connectionBound,
  refusedFamilies,
  toldByGateway
} from '../schema/header-names.ts'
import { credentialOf, type RoutesConfig } from '../schema/routes.ts'

type HeaderConfig = Pick<CheckedConfig, 'gateway' | 'routes'>

export function checkFields(config: HeaderConfig, report: Report): void {
  for (const rule of [checkAllowed, checkReopened, checkCredential, checkValues]) {
    rule(config, report)
  }
}

/** Headers that the gateway sets; a client's value of one must never reach an upstream. */
function isSetByGateway({ gateway: { identity } }: HeaderConfig): (name: string) => boolean {
  const names = Object.values(identity).filter(name => typeof name === 'string')
  const sets = [connectionBound, builtByGateway, toldByGateway, new Set<string>(names)]
  return name => sets.some(set => set.has(name))
}

function checkAllowed(config: HeaderConfig, report: Report): void {
  const isOwn = isSetByGateway(config)
  for (const [name, { passHeaders }] of Object.entries(config.routes.upstreams)) {
    passHeaders?.forEach((header, index) => {
      const path = ['upstreams', name, 'passHeaders', index]
      if (isOwn(header)) report('routes', path, ownMessage(header))
      else if (refusedFamilies.test(header)) report('routes', path, refusedMessage(header))
    })
    if (passHeaders === undefined || passHeaders.includes('content-type')) continue
    if (!takesBodies(config.routes, name)) continue
    const message = 'does not list content-type: the upstream cannot know the type of a body'
    report('routes', ['upstreams', name, 'passHeaders'], message, 'warning')
  }
}

/** A placeholder that is none would be sent as it is written. */
function checkValues({ routes }: HeaderConfig, report: Report): void {
  for (const [name, { headers = {} }] of Object.entries(routes.upstreams)) {
    for (const [header, value] of Object.entries(headers)) {
      if (!/\{\s*\w+[^}]*\}/.test(value) || /^\{profile\.[\w.-]+\}$/.test(value)) continue
      const path = ['upstreams', name, 'headers', header]
      report('routes', path, 'expected {profile.PATH} alone, or a text without placeholders')
    }
  }
}

function ownMessage(header: string) {
  return `"${header}" is set by the gateway: a client’s value never goes to an upstream`
}
function refusedMessage(header: string) {
  return (
    `"${header}" is refused, because back-ends trust it as set by a proxy: ` +
    'name it in passRefusedHeaders of each route that needs it'
  )
}

function takesBodies({ routes }: RoutesConfig, upstream: string) {
  return Object.values(routes).some(
    route => route.upstream === upstream && route.methods.some(method => method !== 'GET')
  )
}

function checkReopened(config: HeaderConfig, report: Report): void {
  const isOwn = isSetByGateway(config)
  for (const [name, { passRefusedHeaders }] of Object.entries(config.routes.routes)) {
    passRefusedHeaders?.forEach((header, index) => {
      const path = ['routes', name, 'passRefusedHeaders', index]
      if (isOwn(header)) return report('routes', path, ownMessage(header))
      if (!refusedFamilies.test(header)) {
        const message =
          `"${header}" is not refused: remove it here; ` +
          'if the upstream has passHeaders, list it there'
        return report('routes', path, message)
      }
      const message =
        `clients can forge "${header}", which back-ends trust as set by a proxy: ` +
        'make sure that this upstream does not trust it'
      report('routes', path, message, 'warning')
    })
  }
}

/** A token in such a header would break the request's framing or the type of its body. */
function checkCredential(config: HeaderConfig, report: Report): void {
  const isOwn = isSetByGateway(config)
  for (const [name, { credential }] of Object.entries(config.routes.upstreams)) {
    const { as, scheme } = credentialOf(credential)
    if (as === 'cookies' && scheme !== undefined) {
      const message = 'cookies have no scheme: leave it out'
      report('routes', ['upstreams', name, 'credential', 'scheme'], message)
    }
    const header = as.startsWith('header:') ? as.slice('header:'.length) : ''
    // Allowed: some back-ends expect the bare token in Authorization.
    if (header === 'authorization') continue
    if (!isOwn(header) && !/^(?:content|accept)-/.test(header)) continue
    const message = `a token cannot go into "${header}": the gateway or HTTP itself uses it`
    report('routes', ['upstreams', name, 'credential'], message)
  }
}
