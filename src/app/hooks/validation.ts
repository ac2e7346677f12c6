/** Validates requests to the gateway's own endpoints by the schemas of their routes. */
import { isIP } from 'node:net'
import { Ajv } from 'ajv'
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../../errors.ts'

/**
 * Replaces Fastify's own validator, which converts values and drops members. All faults of a
 * request are found, since the message depends on which member is wrong: linear, as long as no
 * schema has lists, patterns of unbounded length or more than a few branches.
 */
export function validateRequests(scope: FastifyInstance): void {
  const ajv = new Ajv({
    allErrors: true,
    // Defaults of a query; bodies have none.
    useDefaults: true,
    // Lengths are counted as in JavaScript, like those of stored texts.
    unicode: false,
    formats: { ip: (text: string) => isIP(text) !== 0 },
    // The schemas are our own: to compile the meta schema costs more than all of them.
    meta: false,
    validateSchema: false,
    allowUnionTypes: true,
    strictRequired: false,
    strictTypes: false,
    logger: false
  })
  scope.setValidatorCompiler<object>(({ schema }) => ajv.compile(schema))
}

/** For a route: the error of a request that does not fit its schema. */
export const malformed = (message: string) => () =>
  new GatewayError('request.malformed', { message })
