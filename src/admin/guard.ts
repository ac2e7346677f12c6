/** Checks that a request to the operators' listener carries the operators' secret. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply } from 'fastify'
import { GatewayError } from '../errors/errors.ts'

export interface Guard {
  /** Whether these headers carry the secret. */
  readonly isOperator: (headers: IncomingHttpHeaders) => boolean
  /** Whether anybody may call the route. */
  readonly isOpen: (url: string) => boolean
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

  return {
    // Digests have one length, so the comparison takes the same time for every wrong secret.
    isOperator: ({ authorization = '' }) => {
      const credentials = authorization.replace(/^bearer /i, 'Bearer ')
      return timingSafeEqual(digest(credentials), expected)
    },
    isOpen: url => openPaths.has(url)
  }
}

export async function refuseWithoutSecret(reply: FastifyReply): Promise<unknown> {
  const { status, message, code } = new GatewayError('ops.secret')
  return await reply
    .code(status)
    .header('www-authenticate', 'Bearer realm="operators"')
    .send({ error: message, code, requestId: reply.request.id })
}

function digest(text: string) {
  return createHash('sha256').update(text).digest()
}
