/** Rules for the console's own token: no key passes on what a client sends under its names. */
import { builtByGateway, connectionBound } from '../schema/header-names.ts'
import type { Path } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

type TokenConfig = Pick<CheckedConfig, 'gateway' | 'routes'>

export function checkTokenNames(config: TokenConfig, report: Report): void {
  for (const rule of [checkNames, checkPassedHeaders, checkPassedCookies, checkPassedQuery]) {
    rule(config, report)
  }
}

function checkNames({ gateway: { envelope, session } }: TokenConfig, report: Report): void {
  envelope.tokenHeaders.forEach((name, index) => {
    const place = ['envelope', 'tokenHeaders', index]
    if (name === 'cookie') {
      return report('gateway', place, 'cookies go by their names: list them in `tokenCookies`')
    }
    const isBuilt = builtByGateway.has(name) && name !== 'authorization'
    if (!isBuilt && !connectionBound.has(name) && !/^(?:content|accept)(?:-|$)/.test(name)) return
    report('gateway', place, `"${name}" is a header of HTTP itself, in which no token travels`)
  })
  envelope.tokenCookies.forEach((name, index) => {
    if (name.replace(/^__Host-/, '') !== session.cookie.name) return
    const message =
      'is the session cookie, which sign-in would then delete: ' +
      'name only cookies that the console itself sets'
    report('gateway', ['envelope', 'tokenCookies', index], message)
  })
}

function checkPassedHeaders({ gateway, routes }: TokenConfig, report: Report): void {
  const { tokenHeaders } = gateway.envelope
  const reportAt = (place: Path, name: string) =>
    report('routes', place, messageOf(`"${name}"`, 'tokenHeaders'))
  for (const [name, { passHeaders = [] }] of Object.entries(routes.upstreams)) {
    passHeaders.forEach((header, index) => {
      if (!tokenHeaders.includes(header)) return
      reportAt(['upstreams', name, 'passHeaders', index], header)
    })
  }
  for (const [name, route] of Object.entries(routes.routes)) {
    if (route.passAuthorization === true && tokenHeaders.includes('authorization')) {
      reportAt(['routes', name, 'passAuthorization'], 'authorization')
    }
    route.passRefusedHeaders?.forEach((header, index) => {
      if (!tokenHeaders.includes(header)) return
      reportAt(['routes', name, 'passRefusedHeaders', index], header)
    })
  }
}

function checkPassedCookies({ gateway, routes }: TokenConfig, report: Report): void {
  for (const [name, { passCookies }] of Object.entries(routes.routes)) {
    passCookies?.forEach((cookie, index) => {
      if (!gateway.envelope.tokenCookies.includes(cookie)) return
      const place = ['routes', name, 'passCookies', index]
      report('routes', place, messageOf(`the cookie "${cookie}"`, 'tokenCookies'))
    })
  }
}

function checkPassedQuery({ gateway, routes }: TokenConfig, report: Report): void {
  const tokens = new Set(gateway.envelope.tokenQuery.map(name => name.toLowerCase()))
  for (const [name, { query }] of Object.entries(routes.routes)) {
    for (const [from, to] of Object.entries(query?.rename ?? {})) {
      const token = [from, to].find(each => tokens.has(each.toLowerCase()))
      if (token === undefined) continue
      const place = ['routes', name, 'query', 'rename', from]
      report('routes', place, messageOf(`the parameter "${token}"`, 'tokenQuery'))
    }
  }
}

function messageOf(subject: string, key: string): string {
  return (
    `${subject} is in \`envelope.${key}\` of gateway.yaml, so what a client sends in it is ` +
    'dropped: it may be the real token of another user. ' +
    'Remove it here, or there if the console sends no token in it'
  )
}
