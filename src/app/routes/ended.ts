/** Whether a response says that the back-end's session of the user has ended: `sessionEnded`. */
import type { UpstreamConfig } from '../../config/schema/routes.ts'
import { GatewayError } from '../../errors/errors.ts'
import { readJson } from '../../json/body.ts'
import { matchesTest } from '../../login/response-values.ts'
import type { UpstreamResponse } from '../../proxy/response.ts'

export type EndedTest = NonNullable<UpstreamConfig['sessionEnded']>

/** A response that says so is short; a longer one is not read for it. */
const maxBytes = 16 * 1024

export function saysEnded(test: EndedTest, { status, headers, body }: UpstreamResponse): boolean {
  if (test.status !== undefined && !test.status.includes(status)) return false
  if (test.location !== undefined && !leadsTo(headers['location'], test.location)) return false
  if (test.path === undefined) return true
  if (!Buffer.isBuffer(body) || body.length > maxBytes) return false
  if (!mayHold(test, headers, body)) return false
  try {
    return matchesTest(test, status, readJson(body, headers, maxBytes))
  } catch {
    return false
  }
}

/** perf: most responses do not hold the value at all, so they need not be parsed for it. */
function mayHold(
  { in: values = [], startsWith = [] }: EndedTest,
  headers: UpstreamResponse['headers'],
  body: Buffer
): boolean {
  const texts = [...values, ...startsWith].map(String)
  // Others may be written as escapes.
  const arePlain = texts.length > 0 && texts.every(text => /^[\w .,-]+$/.test(text))
  const isPacked = headers['content-encoding'] !== undefined
  return isPacked || !arePlain || texts.some(text => body.includes(text))
}

function leadsTo(location: string | string[] | undefined, paths: readonly string[]): boolean {
  if (typeof location !== 'string' || !URL.canParse(location, 'http://upstream')) return false
  const { pathname } = new URL(location, 'http://upstream')
  return paths.some(path => pathname.startsWith(path))
}

/** Nobody is signed out yet: the page may try again. */
export function unconfirmed(): GatewayError {
  return new GatewayError('upstream.error', {
    status: 503,
    retryAfter: 1,
    cause: new Error('the response says that the back-end’s session has ended, once')
  })
}
