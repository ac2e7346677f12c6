/** Checks that a request to the operators' listener carries the operators' secret. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import { secretOperator } from './operator.ts'

export interface Guard {
  /** Whether these headers carry the secret. */
  readonly isOperator: (headers: IncomingHttpHeaders) => boolean
  /** A hook that refuses a request without the secret, except on the open paths. */
  readonly check: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>
}

interface Options {
  readonly secret: string
  /** Whether `/metrics` is answered without the secret. */
  readonly openMetrics: boolean
}

export function createGuard({ secret, openMetrics }: Options): Guard {
  const expected = digest(`Bearer ${secret}`)
  const openPaths = new Set(['/healthz', '/readyz'])
  if (openMetrics) openPaths.add('/metrics')

  // Digests have one length, so the comparison takes the same time for every wrong secret.
  const isOperator = ({ authorization = '' }: IncomingHttpHeaders) => {
    const credentials = authorization.replace(/^bearer /i, 'Bearer ')
    return timingSafeEqual(digest(credentials), expected)
  }

  return {
    isOperator,
    check: async (request, reply) => {
      const { url = '' } = request.routeOptions
      if (isOperator(request.headers)) request.operator = secretOperator
      if (openPaths.has(url) || request.operator !== undefined) return
      const { status, message, code } = new GatewayError('ops.secret')
      return await reply
        .code(status)
        .header('www-authenticate', 'Bearer realm="operators"')
        .send({ error: message, code })
    }
  }
}

function digest(text: string) {
  return createHash('sha256').update(text).digest()
}
