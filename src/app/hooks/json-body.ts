/** Bodies of requests to the gateway's own endpoints: JSON, with every digit of its numbers, and forms. */
import type { FastifyInstance } from 'fastify'
import { parseKeepingDigits } from '../../json/digits.ts'

/** Replaces Fastify's own parser, which rounds numbers beyond 2^53: that one only checks. */
export function readJsonBodies(app: FastifyInstance): void {
  // Also for members that would replace a prototype where the body is copied.
  const check = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    const text = String(body).replace(/^\ufeff/, '')
    let fault: Error | null = null
    let value: unknown
    void check(request, text, error => {
      fault = error
      value = error === null ? parseKeepingDigits(text) : undefined
    })
    done(fault, value)
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
