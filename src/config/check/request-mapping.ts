/** Rules for `query` and `body` of routes. */
import type { Path } from '../schema/node.ts'
import type { PagingConfig } from '../schema/request-mapping.ts'
import { flatten } from '../schema/shape-steps.ts'
import type { CheckedConfig, Report } from './report.ts'
import { outermostOf } from './shapes.ts'

type MappingConfig = Pick<CheckedConfig, 'routes'>

export function checkRequestMapping({ routes: config }: MappingConfig, report: Report): void {
  for (const [name, { query, body }] of Object.entries(config.routes)) {
    if (query?.paging !== undefined && query.paging !== false) {
      checkPaging(query.paging, ['routes', name, 'query', 'paging'], report)
    }
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
    checkTarget(taken, ['upstreams', name, 'paging'], report)
    if (taken.offset !== undefined && paging !== undefined && paging.defaultSize === undefined) {
      const message =
        `the upstream "${name}" takes an offset, which needs \`paging.defaultSize\`: the ` +
        'console may send a page without a size'
      report(['paging'], message)
    }
  }
}

function checkPaging({ size, defaultSize, to }: PagingConfig, place: Path, report: Report): void {
  checkTarget(to, [...place, 'to'], report)
  if (to.offset !== undefined && defaultSize === undefined) {
    const message = '`to.offset` needs `defaultSize`: the console may send a page without a size'
    report(place, message)
  }
  if (size === undefined && to.size !== undefined && defaultSize === undefined) {
    report([...place, 'to', 'size'], 'has no effect: set `size` or `defaultSize`')
  }
}

function checkTarget({ page, offset }: PagingConfig['to'], place: Path, report: Report): void {
  if ((page === undefined) === (offset === undefined)) {
    report(place, 'needs one of page and offset')
  }
}
