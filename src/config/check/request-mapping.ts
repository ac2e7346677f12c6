/** Rules for `query` and `body` of routes. */
import { flatten } from '../schema/shape-steps.ts'
import type { CheckedConfig, Report } from './report.ts'
import { outermostOf } from './shapes.ts'

type MappingConfig = Pick<CheckedConfig, 'routes'>

export function checkRequestMapping({ routes: config }: MappingConfig, report: Report): void {
  for (const [name, { body }] of Object.entries(config.routes)) {
    const steps = body?.shape === undefined ? [] : flatten([{ use: body.shape }], config.shapes)
    const step = steps.map(outermostOf).find(each => each !== undefined && each !== 'module')
    if (step === undefined) continue
    const place = ['routes', name, 'body', 'shape']
    report(place, `must not use \`${step}\`, which is about responses`)
  }
  checkSharedPaging(config, report)
}

/** Each half is checked by itself: the other one may come from a preset. */
function checkSharedPaging({ paging, upstreams }: MappingConfig['routes'], report: Report): void {
  for (const [name, { paging: taken }] of Object.entries(upstreams)) {
    if (taken === undefined) continue
    if ((taken.page === undefined) === (taken.offset === undefined)) {
      report(['upstreams', name, 'paging'], 'needs one of page and offset')
    }
    if (taken.offset !== undefined && paging !== undefined && paging.defaultSize === undefined) {
      const message =
        `the upstream "${name}" takes an offset, which needs \`paging.defaultSize\`: the ` +
        'console may send a page without a size'
      report(['paging'], message)
    }
  }
}
