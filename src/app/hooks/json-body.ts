/** Bodies of requests to the gateway's own endpoints: JSON, with every digit of its numbers, and forms. */
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { parseKeepingDigits } from '../../json/digits.ts'

/** Replaces Fastify's own parser, which rounds numbers beyond 2^53. */
export function readJsonBodies(app: FastifyInstance): void {
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    try {
      done(null, parseBody(String(body).replace(/^\ufeff/, '')))
    } catch (error) {
      // The parser's own message quotes the body, and a password may stand there.
      const cause = error instanceof SyntaxError ? new Error('Not valid JSON.') : error
      done(new GatewayError('request.malformed', { cause }))
    }
  })
}

/**
 * Forms of the sign-in: some consoles post them. A name that comes twice has its last value.
 * @param flag the member that is true or false
 */
export function readForms(scope: FastifyInstance, flag: string): void {
  const type = 'application/x-www-form-urlencoded'
  scope.addContentTypeParser(type, { parseAs: 'string' }, (_request, body, done) => {
    // `fromEntries` makes own members of all names, `__proto__` too.
    const { [flag]: value, ...texts } = Object.fromEntries(new URLSearchParams(String(body)))
    const isOn = value !== undefined && /^(?:true|on|1)$/.test(value)
    done(null, value === undefined ? texts : { ...texts, [flag]: isOn })
  })
}

/** How such a member may be written; escapes may hide it. */
const mayReplacePrototype = /__proto__|constructor|\\u/

function parseBody(text: string): unknown {
  if (mayReplacePrototype.test(text)) JSON.parse(text, refusePrototypes)
  return parseKeepingDigits(text)
}

/** A member that would replace a prototype where the body is copied. */
function refusePrototypes(name: string, value: unknown): unknown {
  const isPrototype = name === 'constructor' && Object.hasOwn(Object(value) as object, 'prototype')
  if (name === '__proto__' || isPrototype) {
    throw new Error('a member of the body would replace a prototype')
  }
  return value
}
