/** CORS for the pages of other origins that config lists; without any, no hook is added. */
import cors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'
import type { GatewayConfig } from '../../config/schema/gateway.ts'

const exposedHeaders = [
  'x-request-id',
  'retry-after',
  'ratelimit',
  'ratelimit-policy',
  'x-session-idle-in',
  'x-session-absolute-in'
]

export async function addCors(
  app: FastifyInstance,
  { origins, corsHeaders }: Pick<GatewayConfig['server'], 'origins' | 'corsHeaders'>
): Promise<void> {
  if (origins.length === 0) return
  await app.register(cors, {
    origin: [...origins],
    credentials: true,
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [...corsHeaders],
    exposedHeaders,
    maxAge: 600
  })
}
