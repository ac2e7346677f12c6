/**
 * Refuses requests of web pages in a browser on this machine, whether by another host name or by a
 * form.
 */
import { isIP } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError, toGatewayError } from '../errors.ts'
import { validateRequests } from '../app/hooks/validation.ts'

/** For a scope of the operators' listener that shows or changes data. */
export function guardAdminScope(scope: FastifyInstance): void {
  validateRequests(scope)
  scope.addHook('preValidation', async (request: FastifyRequest) => {
    // A command without parameters sends no body.
    if (!isRecord(request.body)) request.body = {}
  })
  scope.addHook('onRequest', async ({ headers }: FastifyRequest) => {
    const name = hostName(headers.host)
    if (isIP(name) === 0 && name !== 'localhost') {
      throw new GatewayError('request.malformed', {
        message: 'Call the operators’ listener by its IP address, not by a name.'
      })
    }
    if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) {
      throw new GatewayError('origin.refused')
    }
  })
  scope.removeContentTypeParser('text/plain')
  scope.setErrorHandler(sendAdminError)
}

/** Errors of the operators' listener: for people with curl, not for consoles. */
export function sendAdminError(
  thrown: unknown,
  _request: unknown,
  reply: FastifyReply
): FastifyReply {
  const error = toGatewayError(thrown)
  return reply.code(error.status).send({ error: error.message, code: error.code })
}

/** The name in a `Host` header, without port and brackets. */
export function hostName(host = '') {
  return host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
}

function isRecord(body: unknown) {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
}
