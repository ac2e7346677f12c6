import { type JsonSchema, schemaProblem } from '../../contract/schema.ts'
import type { Path } from '../schema/node.ts'
import type { ContractConfig, PartConfig } from '../schema/proxied.ts'
import type { RouteConfig, RoutesConfig } from '../schema/routes.ts'
import type { Steps } from '../schema/steps.ts'
import { checkRewrite } from './paths.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'

export function checkParts({ routes: { routes, endpoints } }: CheckedConfig, report: Report): void {
  for (const [name, route] of Object.entries(routes)) {
    const place = ['routes', name]
    if (hasParts(route)) checkAggregated(route, place, report)
    if (route.websocket !== undefined && !route.methods.includes('GET')) {
      report([...place, 'websocket'], 'needs GET among the methods: a WebSocket begins as one')
    }
  }
  checkRewrites(endpoints.profile, ['endpoints', 'profile'], report)
  checkPlaces(endpoints.profile, ['endpoints', 'profile'], report)
}

function hasParts({ parts = {} }: RouteConfig) {
  return Object.keys(parts).length > 0
}

function checkAggregated(route: RouteConfig, place: Path, report: Report): void {
  if (route.methods.some(method => method !== 'GET')) {
    const message = 'a response made of parts can only be read: set methods: [GET]'
    report([...place, 'methods'], message)
  }
  if (route.websocket !== undefined) {
    report([...place, 'websocket'], 'cannot be combined with parts')
  }
  checkRewrites(route, place, report)
  checkPlaces(route, place, report)
}

interface Aggregated {
  readonly path: string
  readonly parts?: Readonly<Record<string, PartConfig>>
  readonly into?: string
}

function checkRewrites({ path, parts = {} }: Aggregated, place: Path, report: Report): void {
  for (const [name, { rewrite }] of Object.entries(parts)) {
    checkRewrite(path, rewrite, [...place, 'parts', name, 'rewrite'], report)
  }
}

function checkPlaces({ parts = {}, into }: Aggregated, place: Path, report: Report): void {
  const places = [
    { by: 'the response of the route’s own upstream', into, where: [...place, 'into'] },
    ...Object.entries(parts).map(([name, part]) => ({
      by: `the part "${name}"`,
      into: part.into,
      where: [...place, 'parts', name, 'into']
    }))
  ].filter(each => each.into !== undefined)
  for (const [index, { into: path = '', where }] of places.entries()) {
    const other = places
      .slice(0, index)
      .find(({ into: taken = '' }) => isWithin(taken, path) || isWithin(path, taken))
    if (other === undefined) continue
    report(where, `"${other.into}" is taken by ${other.by}`, { also: other.where })
  }
}

function isWithin(path: string, above: string) {
  return `${path}.`.startsWith(`${above}.`)
}

function contractsIn({ routes, endpoints: { profile } }: RoutesConfig) {
  return Object.entries<{ readonly contract?: ContractConfig }>({ ...routes, profile }).flatMap(
    ([name, { contract }]) => (contract === undefined ? [] : [[name, contract] as const])
  )
}

/** @param files by their names; what config names and is not there was reported */
export function* contractSteps<File extends { readonly value: JsonSchema }>(
  routes: RoutesConfig,
  files: Readonly<Record<string, File>>,
  reportIn: (file: File) => Report
): Steps<Record<string, JsonSchema>> {
  const schemas: Record<string, JsonSchema> = {}
  for (const [name, { file: fileName }] of contractsIn(routes)) {
    const file = files[fileName]
    if (file === undefined) continue
    const problem = schemaProblem(file.value)
    if (problem === undefined) schemas[name] = file.value
    else reportIn(file)(problem.path, problem.message)
    yield
  }
  return schemas
}

/** `strict` has to refuse a response before it is sent, and only shaped responses are read first. */
export function checkContracts({ routes: { routes } }: CheckedConfig, report: Report): void {
  for (const [name, { contract, shape, parts = {} }] of Object.entries(routes)) {
    if (contract?.mode === 'strict' && shape === undefined && Object.keys(parts).length === 0) {
      report(
        ['routes', name, 'contract', 'mode'],
        '`strict` needs a shape: only a shaped response is read before it is sent'
      )
    }
  }
}
