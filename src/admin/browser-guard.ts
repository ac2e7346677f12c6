/** Who may ask the operators' desk: no page that a browser on this machine shows, neither by another name for it, nor by a form. */
import { isIP } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError, toGatewayError } from '../errors.ts'
import { validateRequests } from '../app/hooks/validation.ts'

/** For a scope of the ops listener whose answers tell or change something. */
export function guardAdminScope(scope: FastifyInstance): void {
  validateRequests(scope)
  scope.addHook('preValidation', async (request: FastifyRequest) => {
    // A command with nothing to say sends no body.
    if (!isRecord(request.body)) request.body = {}
  })
  scope.addHook('onRequest', async ({ headers }: FastifyRequest) => {
    const name = hostName(headers.host)
    if (isIP(name) === 0 && name !== 'localhost') {
      throw new GatewayError('request.malformed', {
        message: 'Call the operators’ desk by its address, not by a name.'
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

/** The name in a `Host` field, without port and brackets. */
export function hostName(host = '') {
  return host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
}

function isRecord(body: unknown) {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
}
