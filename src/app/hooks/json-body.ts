/** JSON bodies of requests to the gateway's own endpoints, with every digit of their numbers. */
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../../errors.ts'
import { parseKeepingDigits } from '../../json/digits.ts'
import { isPoisoned } from '../../json/poisoned.ts'

/** Replaces Fastify's own parser, which rounds numbers beyond 2^53. */
export function readJsonBodies(app: FastifyInstance): void {
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    try {
      done(null, parseBody(String(body)))
    } catch (error) {
      // The parser's own message quotes the body, and a password may stand there.
      const cause = error instanceof SyntaxError ? new Error('Not valid JSON.') : error
      done(new GatewayError('request.malformed', { cause }))
    }
  })
}

function parseBody(body: string): unknown {
  const text = body.charCodeAt(0) === 0xfeff ? body.slice(1) : body
  const value = parseKeepingDigits(text)
  if (isPoisoned(text, value)) throw new Error('a member of the body would replace a prototype')
  return value
}
