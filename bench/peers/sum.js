/** Peer: the sum of Fastify's plugins, as their READMEs say: session and limit in Redis, a guard, identity fields, the proxy. */
import cookie from '@fastify/cookie'
import httpProxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import session from '@fastify/session'
import { RedisStore } from 'connect-redis'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { createClient } from 'redis'

const [port, upstream, redis] = process.argv.slice(2)
const app = Fastify({ trustProxy: '127.0.0.1' })
const client = await createClient({ url: redis }).connect()
await app.register(cookie)
await app.register(session, {
  secret: 'a secret for the bench, long enough for anyone',
  store: new RedisStore({ client, prefix: 'sum:session:' }),
  saveUninitialized: false,
  rolling: false,
  cookie: { secure: true, sameSite: 'strict', maxAge: 1_800_000 }
})
await app.register(rateLimit, {
  global: false,
  redis: new Redis(redis),
  nameSpace: 'sum:limit:'
})
app.post('/login', async request => {
  const { username } = request.body
  request.session.user = { id: `id-${username}`, username, roles: ['admin'] }
  return { ok: true }
})
app.register(async scope => {
  scope.addHook('onRequest', async (request, reply) => {
    if (request.session.user === undefined) return reply.code(401).send({ success: false })
  })
  const limit = scope.rateLimit({
    max: 1_000_000_000,
    timeWindow: 60_000,
    keyGenerator: request => request.session.user.id
  })
  scope.addHook('onRequest', limit)
  await scope.register(httpProxy, {
    upstream,
    prefix: '/api/notices',
    rewritePrefix: '/notices',
    replyOptions: {
      rewriteRequestHeaders: (request, headers) => ({
        ...headers,
        'x-user-id': request.session.user.id,
        'x-user-name': request.session.user.username,
        'x-user-roles': request.session.user.roles.join(',')
      })
    }
  })
})
app.get('/ready', async () => 'ready')
await app.listen({ port: Number(port), host: '127.0.0.1' })
process.once('SIGTERM', () => process.exit())
