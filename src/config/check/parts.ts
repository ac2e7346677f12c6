import { type JsonSchema, schemaProblem } from '../../contract/schema.ts'
import type { Report, Rule } from '../schema/config.ts'
import type { Path } from '../schema/node.ts'
import type { RouteConfig, RoutesConfig } from '../schema/routes.ts'
import type { Steps } from '../schema/steps.ts'
import { checkRewrite } from './paths.ts'

export const checkParts: Rule = ({ routes: { routes, endpoints } }, report) => {
  for (const [name, route] of Object.entries(routes)) {
    const { methods, websocket, contract, shape, parts = {} } = route
    const place = ['routes', name]
    const hasParts = Object.keys(parts).length > 0
    if (hasParts && methods.some(method => method !== 'GET')) {
      report([...place, 'methods'], 'a response made of parts can only be read: set methods: [GET]')
    }
    if (hasParts && websocket !== undefined) {
      report([...place, 'websocket'], 'cannot be combined with parts')
    }
    if (websocket !== undefined && !methods.includes('GET')) {
      report([...place, 'websocket'], 'needs GET among the methods: a WebSocket begins as one')
    }
    if (contract?.mode === 'strict' && shape === undefined && !hasParts) {
      const message = '`strict` needs a shape: only a shaped response is read before it is sent'
      report([...place, 'contract', 'mode'], message)
    }
    checkPlaces(route, place, report)
  }
  checkPlaces(endpoints.profile, ['endpoints', 'profile'], report)
}

type Aggregated = Pick<RouteConfig, 'path' | 'parts' | 'into'>

function checkPlaces({ path: of, parts = {}, into }: Aggregated, place: Path, report: Report) {
  const taken = [{ by: 'the response of the route’s own upstream', into, at: [...place, 'into'] }]
  for (const [name, part] of Object.entries(parts)) {
    const where = [...place, 'parts', name]
    checkRewrite(of, part.rewrite, [...where, 'rewrite'], report)
    const each = { by: `the part "${name}"`, into: part.into, at: [...where, 'into'] }
    const other = taken.find(({ into: path }) => isWithin(path, each.into))
    if (other !== undefined) {
      report(each.at, `"${other.into}" is taken by ${other.by}`, { also: other.at })
    }
    taken.push(each)
  }
}

function isWithin(path: string | undefined, other: string | undefined) {
  if (path === undefined || other === undefined) return false
  return `${path}.`.startsWith(`${other}.`) || `${other}.`.startsWith(`${path}.`)
}

/** @param files by their names; what config names and is not there was reported */
export function* contractSteps<File extends { readonly value: JsonSchema }>(
  { routes, endpoints: { profile } }: RoutesConfig,
  files: Readonly<Record<string, File>>,
  reportIn: (file: File) => Report
): Steps<Record<string, JsonSchema>> {
  const schemas: Record<string, JsonSchema> = {}
  const all: Record<string, Pick<RouteConfig, 'contract'>> = { ...routes, profile }
  for (const [name, { contract }] of Object.entries(all)) {
    const file = contract && files[contract.file]
    if (file === undefined) continue
    const problem = schemaProblem(file.value)
    if (problem === undefined) schemas[name] = file.value
    else reportIn(file)(problem.path, problem.message)
    yield
  }
  return schemas
}
