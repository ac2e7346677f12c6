import { type JsonSchema, schemaProblem } from '../../contract/schema.ts'
import type { Report, Rule } from '../schema/config.ts'
import type { RouteConfig } from '../schema/routes.ts'
import { checkRewrite } from './paths.ts'

export const checkParts: Rule = ({ routes: { routes, endpoints } }, report) => {
  for (const [name, route] of Object.entries(routes)) {
    const { methods, websocket, contract, shape, parts = {} } = route
    const fault = report.at('routes', name)
    const hasParts = Object.keys(parts).length > 0
    if (hasParts && methods.some(method => method !== 'GET')) {
      fault(['methods'], 'a response made of parts can only be read: set methods: [GET]')
    }
    if (hasParts && websocket !== undefined) {
      fault(['websocket'], 'cannot be combined with parts')
    }
    if (websocket !== undefined && !methods.includes('GET')) {
      fault(['websocket'], 'needs GET among the methods: a WebSocket begins as one')
    }
    if (contract?.mode === 'strict' && shape === undefined && !hasParts) {
      fault(['contract', 'mode'], '`strict` needs a shape: others are sent before they are read')
    }
    checkPlaces(route, fault)
  }
  checkPlaces(endpoints.profile, report.at('endpoints', 'profile'))
}

type Aggregated = Pick<RouteConfig, 'path' | 'parts' | 'into'>

function checkPlaces({ path: of, parts = {}, into }: Aggregated, report: Report): void {
  const taken = [{ by: 'the response of the route’s own upstream', into, at: ['into'] }]
  for (const [name, part] of Object.entries(parts)) {
    const where = ['parts', name]
    checkRewrite(of, part.rewrite, report.at(...where, 'rewrite'))
    const each = { by: `the part "${name}"`, into: part.into, at: [...where, 'into'] }
    const other = taken.find(({ into: path }) => isWithin(path, each.into))
    if (other !== undefined) {
      report(each.at, `"${other.into}" is taken by ${other.by}`, other.at)
    }
    taken.push(each)
  }
}

function isWithin(path: string | undefined, other: string | undefined) {
  if (path === undefined || other === undefined) return false
  return `${path}.`.startsWith(`${other}.`) || `${other}.`.startsWith(`${path}.`)
}

export function checkSchema(schema: JsonSchema, report: Report): void {
  const problem = schemaProblem(schema)
  if (problem !== undefined) report(problem.path, problem.message)
}
