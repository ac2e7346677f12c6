/** Rules of each route by itself, and of the endpoints that answer as routes do. */
import { type JsonSchema, schemaProblem } from '../../contract/schema.ts'
import type { Report, Rule } from '../schema/config.ts'
import { nearest } from '../schema/faults.ts'
import { endpointNames } from '../schema/own-endpoints.ts'
import { variablesOf } from '../schema/public-path.ts'
import type { RouteConfig, RoutesConfig } from '../schema/routes.ts'
import { flatten } from '../schema/shapes.ts'
import { checkAnswer, checkStatus } from './answers.ts'
import { outermostOf } from './shapes.ts'

export const checkRoutes: Rule = ({ routes: { routes, endpoints, shapes } }, report) => {
  for (const [name, route] of Object.entries(routes)) {
    const fault = report.at('routes', name)
    if (endpointNames.has(name)) {
      fault([], `"${name}" is the name of an endpoint: choose another name`)
    }
    checkAccess(route, fault)
    checkPath(route, fault)
    checkParts(route, fault)
    checkPlaces(route, fault)
    if (route.answer !== undefined) {
      checkAnswer(route.answer, route.access !== 'public', fault.at('answer'))
      checkStatus(route.answer, fault.at('answer'))
    }
    checkBody(route, shapes, fault)
  }
  checkPlaces(endpoints.profile, report.at('endpoints', 'profile'))
  for (const name of ['login', 'logout', 'profile', 'refresh'] as const) {
    const answer = endpoints[name]?.answer
    const ofAnswer = report.at('endpoints', name, 'answer')
    if (answer !== undefined) checkAnswer(answer, name !== 'logout', ofAnswer)
  }
}

function checkAccess({ access, keys, path }: RouteConfig, report: Report): void {
  if (access !== 'public') return
  if (keys) report(['keys'], 'protects nothing on a public route: set access: session')
  if (/\/admin(\/|$)/.test(path)) {
    const message = 'is public, although the path contains /admin: `access: session` is safer'
    report.warn(['access'], message)
  }
}

function checkPath({ path, rewrite }: RouteConfig, report: Report): void {
  const variables = variablesOf(path)
  const twice = variables.find((each, index) => variables.indexOf(each) !== index)
  if (twice !== undefined) report(['path'], `must not contain ${twice} twice`)
  if (rewrite === undefined) return
  checkRewrite(path, rewrite, report.at('rewrite'))
  if (path.endsWith('/*') && !rewrite.endsWith('/*')) {
    report(['rewrite'], 'must end in /*, as the public path does')
  }
}

function checkRewrite(path: string, rewrite: string, report: Report): void {
  const variables = variablesOf(path)
  for (const each of variablesOf(rewrite).filter(name => !variables.includes(name))) {
    report([], `the public path has no ${each}.${nearest(each, variables)}`)
  }
  for (const each of variables.filter(name => name !== '*')) {
    if (!new RegExp(`[^/]${each}\\b`).test(rewrite)) continue
    report([], `${each} must be a whole segment`)
  }
}

function checkParts(
  { methods, websocket, contract, shape, parts = {} }: RouteConfig,
  fault: Report
) {
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

function checkBody({ body }: RouteConfig, shapes: RoutesConfig['shapes'], report: Report): void {
  const steps = body?.shape === undefined ? [] : flatten([{ use: body.shape }], shapes)
  const step = steps.map(outermostOf).find(each => each !== undefined && each !== 'module')
  if (step === undefined) return
  report(['body', 'shape'], `must not use \`${step}\`, which is about responses`)
}

export function checkSchema(schema: JsonSchema, report: Report): void {
  const problem = schemaProblem(schema)
  if (problem !== undefined) report(problem.path, problem.message)
}
