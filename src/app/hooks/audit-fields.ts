/** Members of request bodies that the audit ledger records, as `audit.fields` says. */
import { createHmac } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { type AuditConfig, type HowToShow, memberPathOf } from '../../config/schema/audit.ts'
import { readJson } from '../../json/body.ts'
import { type Json, textOf, valueAt } from '../../json/values.ts'

interface Member {
  readonly name: string
  readonly path: readonly string[]
  readonly show: (text: string) => string
}

const maxBodyBytes = 64 * 1024
const maxText = 256
const shownEnd = 4
const hashLength = 16

/** By route. */
export function compileBodyFields({ fields, key: [key = ''] }: AuditConfig) {
  return new Map(
    Object.entries(fields).map(([route, members]) => [
      route,
      Object.entries(members).map(([name, how]): Member => {
        return { name, path: memberPathOf(name), show: shownBy(how, key) }
      })
    ])
  )
}

function shownBy(how: HowToShow, key: string): Member['show'] {
  if (how === 'plain') return text => text.slice(0, maxText)
  if (how === 'last4') {
    return text => (text.length > 2 * shownEnd ? `…${text.slice(-shownEnd)}` : '…')
  }
  return text => createHmac('sha256', key).update(text).digest('base64url').slice(0, hashLength)
}

/** The members of a request's body; undefined where config names none. */
export function fieldsOf(
  { clientBody: body, headers }: FastifyRequest,
  members: readonly Member[] | undefined
): Readonly<Record<string, string>> | undefined {
  if (members === undefined) return undefined
  // A larger body was streamed, and no part of it is in memory any more.
  if (!Buffer.isBuffer(body) || body.length > maxBodyBytes) return undefined
  const value = valueOf(body, headers)
  const shown = members.flatMap(({ name, path, show }) => {
    const member = valueAt(value, path)
    const text = member === null ? undefined : textOf(member)
    return text === undefined ? [] : [[name, show(text)] as const]
  })
  return Object.fromEntries(shown)
}

/** Null for a body that cannot be read: the upstream decides what is wrong with it. */
function valueOf(body: Buffer, headers: FastifyRequest['headers']): Json {
  try {
    if (!/^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '')) {
      return readJson(body, headers, maxBodyBytes)
    }
    const values = new Map<string, string>()
    for (const [name, text] of new URLSearchParams(body.toString('utf8'))) {
      const before = values.get(name)
      // Back-ends differ in which value of a repeated name they take, so all of them are recorded.
      values.set(name, before === undefined ? text : `${before}, ${text}`)
    }
    return Object.fromEntries(values)
  } catch {
    return null
  }
}
