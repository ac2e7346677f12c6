/** Rules for `query` and `body` of routes, and for the fixed headers of upstreams. */
import { builtByGateway, connectionBound, toldByGateway } from '../schema/header-names.ts'
import { credentialOf } from '../schema/routes.ts'
import type { ShapeStep } from '../schema/shapes.ts'
import { ownMember } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

type MappingConfig = Pick<CheckedConfig, 'gateway' | 'routes'>

export function checkRequestMapping(config: MappingConfig, report: Report): void {
  const { routes, shapes } = config.routes
  for (const [name, { body }] of Object.entries(routes)) {
    if (body === undefined) continue
    const place = ['routes', name, 'body']
    const step = responseStepOf(ownMember(shapes, body.shape ?? '') ?? [], shapes, new Set())
    if (step !== undefined) {
      report('routes', [...place, 'shape'], `must not use \`${step}\`, which is about responses`)
    }
  }
  checkSharedPaging(config.routes, report)
  checkFixedHeaders(config, report)
}

/** Each half is checked by itself: the other one may come from a preset. */
function checkSharedPaging({ paging, upstreams }: MappingConfig['routes'], report: Report): void {
  for (const [name, { paging: taken }] of Object.entries(upstreams)) {
    if (taken === undefined) continue
    const place = ['upstreams', name, 'paging']
    if ((taken.page === undefined) === (taken.offset === undefined)) {
      report('routes', place, 'needs one of page and offset')
    }
    if (taken.offset !== undefined && paging !== undefined && paging.defaultSize === undefined) {
      const message =
        `the upstream "${name}" takes an offset, which needs \`paging.defaultSize\`: the ` +
        'console may send a page without a size'
      report('routes', ['paging'], message)
    }
  }
}

const responseSteps = ['open', 'status', 'wrap', 'paging'] as const

function responseStepOf(
  steps: readonly ShapeStep[],
  shapes: Readonly<Record<string, readonly ShapeStep[]>>,
  seen: Set<string>
): string | undefined {
  for (const step of steps) {
    const name = responseSteps.find(each => step[each] !== undefined)
    if (name !== undefined) return name
    if (step.use === undefined || seen.has(step.use)) continue
    seen.add(step.use)
    const inner = responseStepOf(ownMember(shapes, step.use) ?? [], shapes, seen)
    if (inner !== undefined) return inner
  }
  return undefined
}

function checkFixedHeaders({ gateway: { identity }, routes }: MappingConfig, report: Report): void {
  const identityNames = new Set(Object.values(identity).filter(name => typeof name === 'string'))
  const isOwn = (name: string) =>
    name !== 'authorization' &&
    [connectionBound, builtByGateway, toldByGateway].some(names => names.has(name))
  for (const [upstream, { headers = {}, secretHeaders = {}, credential }] of Object.entries(
    routes.upstreams
  )) {
    const { as } = credentialOf(credential)
    const sentAs = as === 'bearer' ? 'authorization' : as.replace(/^header:/, '')
    for (const key of ['headers', 'secretHeaders'] as const) {
      for (const name of Object.keys(key === 'headers' ? headers : secretHeaders)) {
        const place = ['upstreams', upstream, key, name]
        if (isOwn(name)) report('routes', place, `"${name}" is set by the gateway`)
        if (identityNames.has(name)) {
          report('routes', place, `"${name}" is a header of \`identity\`: choose another one`)
        }
        if (name === sentAs) report('routes', place, `\`credential\` sends "${name}" already`)
      }
    }
    const twice = Object.keys(headers).find(name => Object.hasOwn(secretHeaders, name))
    if (twice !== undefined) {
      report('routes', ['upstreams', upstream, 'headers', twice], 'is in `secretHeaders` too')
    }
  }
}
