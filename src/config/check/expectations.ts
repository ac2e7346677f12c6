/** Rules for expectations: each expects something, and names codes and upstreams that exist. */
import { isIP } from 'node:net'
import type { Static } from 'typebox'
import { errorKinds } from '../../errors/errors.ts'
import type { Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import { expectSchema } from '../schema/expectations.ts'

export function checkExpectations(
  {
    routes: { expect, upstreams }
  }: {
    readonly routes: { readonly expect: Static<typeof expectSchema>; readonly upstreams: object }
  },
  report: Report
): void {
  for (const [
    request,
    { status, code, upstream, upstreamPath, response, address }
  ] of Object.entries(expect)) {
    if ((status ?? code ?? upstream ?? upstreamPath ?? response) === undefined) {
      report(
        'routes',
        ['expect', request],
        'expects nothing: set status, code, upstream, upstreamPath or response'
      )
    }
    if (code !== undefined && !Object.hasOwn(errorKinds, code)) {
      report(
        'routes',
        ['expect', request, 'code'],
        `there is no error code "${code}".${nearest(code, Object.keys(errorKinds))}`
      )
    }
    if (upstream !== undefined && !Object.hasOwn(upstreams, upstream)) {
      report(
        'routes',
        ['expect', request, 'upstream'],
        `there is no upstream "${upstream}".${nearest(upstream, Object.keys(upstreams))}`
      )
    }
    if (address !== undefined && isIP(address) === 0) {
      report(
        'routes',
        ['expect', request, 'address'],
        `is not a valid IP address: expected one such as 192.0.2.10, found "${address}"`
      )
    }
  }
}
