/** Rules for the header fields of clients that upstreams get. */
import type { Checked, Report } from './report.ts'
import {
  builtByGateway,
  connectionBound,
  refusedFamilies,
  toldByGateway
} from '../schema/header-names.ts'
import { credentialOf, type RoutesConfig } from '../schema/routes.ts'

type Fields = Pick<Checked, 'gateway' | 'routes'>

export function checkFields(config: Fields, report: Report): void {
  for (const rule of [checkAllowed, checkReopened, checkCredential]) rule(config, report)
}

/** The gateway's own word, which no client may speak. */
function ownNames({ gateway: { identity } }: Fields): (name: string) => boolean {
  const names = Object.values(identity).filter(name => typeof name === 'string')
  const told = new Set<string>(names)
  return name => [connectionBound, builtByGateway, toldByGateway, told].some(set => set.has(name))
}

function checkAllowed(config: Fields, report: Report): void {
  const isOwn = ownNames(config)
  for (const [name, { passHeaders }] of Object.entries(config.routes.upstreams)) {
    passHeaders?.forEach((header, index) => {
      const path = ['upstreams', name, 'passHeaders', index]
      if (isOwn(header)) report('routes', path, ownMessage(header))
      else if (refusedFamilies.test(header)) report('routes', path, refusedMessage(header))
    })
    if (passHeaders === undefined || passHeaders.includes('content-type')) continue
    if (!takesBodies(config.routes, name)) continue
    const message = 'does not name content-type: the upstream is not told what a body is'
    report('routes', ['upstreams', name, 'passHeaders'], message, 'warning')
  }
}

function ownMessage(header: string) {
  return `"${header}" is the gateway’s own: a client’s never goes to an upstream`
}
function refusedMessage(header: string) {
  return (
    `"${header}" is one that back-ends take as the word of a proxy: ` +
    'name it in passRefusedHeaders of each route that needs it'
  )
}

function takesBodies({ routes }: RoutesConfig, upstream: string) {
  return Object.values(routes).some(
    route => route.upstream === upstream && route.methods.some(method => method !== 'GET')
  )
}

function checkReopened(config: Fields, report: Report): void {
  const isOwn = ownNames(config)
  for (const [name, { passRefusedHeaders }] of Object.entries(config.routes.routes)) {
    passRefusedHeaders.forEach((header, index) => {
      const path = ['routes', name, 'passRefusedHeaders', index]
      if (isOwn(header)) return report('routes', path, ownMessage(header))
      if (!refusedFamilies.test(header)) {
        const message =
          `"${header}" is not refused: it passes without this, ` +
          'or where it stands in passHeaders of the upstream'
        return report('routes', path, message)
      }
      const message =
        `clients may say what they like in "${header}", which back-ends take as the ` +
        'word of a proxy: make sure that this upstream does not believe it'
      report('routes', path, message, 'warning')
    })
  }
}

/** A token in such a field would break the framing, or the body's description, of each request. */
function checkCredential(config: Fields, report: Report): void {
  const isOwn = ownNames(config)
  for (const [name, { credential }] of Object.entries(config.routes.upstreams)) {
    const { as } = credentialOf(credential)
    const header = as.startsWith('header:') ? as.slice('header:'.length) : ''
    // Some back-ends want the bare token there.
    if (header === 'authorization') continue
    if (!isOwn(header) && !/^(?:content|accept)-/.test(header)) continue
    const message = `a token cannot go into "${header}": the gateway or HTTP itself uses it`
    report('routes', ['upstreams', name, 'credential'], message)
  }
}
