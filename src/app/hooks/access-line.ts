/** The access line's members as JSON text, without an object and pino's loop over it. */
import { toHundredths } from '../../observability/request-record.ts'
import type { Trail } from '../../observability/trail.ts'
import { isRemarkable, reasonsOf } from './request-facts.ts'

/**
 * The bytes that pino would write; a member without a value is not written.
 * perf: 0.7 µs, where pino takes 4 µs for the same members. Ids, method, code and address are
 * written as they are: the gateway made them or checked them, and they hold nothing to escape.
 * @param endedSession public id of the session that the cookie names, if that is over
 * @returns each member with a comma before it
 */
export function accessMembers(trail: Trail, endedSession: string | undefined): string {
  const { trace, code, upstreamMs, user, userId, session } = trail
  let members = `,"requestId":"${trail.requestId}"`
  if (trace?.isLogged === true) members += `,"traceId":"${trace.traceId}"`
  members += `,"route":${quoted(trail.route)},"method":"${trail.method}"`
  members += `,"path":${quoted(trail.path)},"status":${trail.status},"ms":${hundredths(trail.ms)}`
  if (code !== undefined) members += `,"code":"${code}"`
  if (upstreamMs !== undefined) members += `,"upstreamMs":${hundredths(upstreamMs)}`
  members += `,"address":"${trail.address}"`
  if (user !== undefined) members += `,"user":${quoted(user)}`
  if (userId !== undefined) members += `,"userId":${quoted(userId)}`
  if (endedSession !== undefined) members += `,"endedSession":"${endedSession}"`
  else if (session !== undefined) members += `,"session":"${session}"`
  return isRemarkable(trail) ? members + reasonMembers(trail) : members
}

function reasonMembers(trail: Trail): string {
  let members = ''
  for (const [name, value] of Object.entries(reasonsOf(trail))) {
    if (value !== undefined) members += `,"${name}":${JSON.stringify(value)}`
  }
  return members
}

const plain = /^[ !#-[\]-~]*$/

function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text)
}

/** `''`, `.01`, …, `.1`, …, `.99` */
const fractions = Array.from({ length: 100 }, (_, hundredth) => String(hundredth / 100).slice(1))
const maxWhole = 2 ** 31

/** perf: of small whole numbers V8 keeps the text, of others it computes the shortest. */
function hundredths(ms: number): string {
  const count = Math.round(ms * 100)
  if (!(count >= 0 && count < maxWhole)) return JSON.stringify(toHundredths(ms))
  return `${Math.floor(count / 100)}${fractions[count % 100]}`
}
