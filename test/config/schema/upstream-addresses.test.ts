/** The addresses of an upstream, as files give them. */
import t, { type Test } from 'tap'
import { faultsOf, textFolder } from '../../support/config-files.ts'

function faults(t: Test, upstream: string): string[] {
  const text = `upstreams: { b: ${upstream} }\nroutes: { r: { path: /api/r, upstream: b } }`
  return faultsOf(textFolder(t.after, { 'routes.yaml': text })).filter(
    fault => !fault.includes('warning')
  )
}

t.test('an upstream has either of them, and its addresses are alike', async t => {
  const cases: Array<[upstream: string, fault: RegExp]> = [
    ['{}', /upstreams\.b\.url: is missing/],
    ['{ url: http://b, urls: [http://c] }', /upstreams\.b: .*both/],
    ['{ urls: [] }', /urls/],
    ['{ urls: [http://b, ftp://c] }', /urls/],
    ['{ urls: [http://b, https://c] }', /urls\.1.*http:/],
    ['{ urls: [http://b/x, http://c/y] }', /urls\.1.*"\/x"/],
    ['{ urls: [http://b, http://c, http://b] }', /urls\.2.*twice/],
    ['{ urls: [http://b, "http://c:99999"] }', /urls\.1.*not a valid URL/]
  ]
  for (const [upstream, fault] of cases) t.match(faults(t, upstream), [fault], upstream)
  t.same(faults(t, '{ urls: [http://b/x, http://c/x] }'), [])
})
