/** Peer: what an Express application puts together for the same. */
import { Agent } from 'node:http'
import { RedisStore as SessionStore } from 'connect-redis'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import session from 'express-session'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { RedisStore as LimitStore } from 'rate-limit-redis'
import { createClient } from 'redis'

const [port, upstream, redis] = process.argv.slice(2)
const app = express()
const client = await createClient({ url: redis }).connect()
app.set('trust proxy', 'loopback')
app.get('/ready', (_request, response) => {
  response.end('ready')
})
app.use(
  session({
    secret: 'a secret for the bench, long enough for anyone',
    store: new SessionStore({ client, prefix: 'express:session:' }),
    resave: false,
    saveUninitialized: false,
    cookie: { secure: true, sameSite: 'strict', maxAge: 1_800_000 }
  })
)
app.post('/login', express.json(), (request, response) => {
  const { username } = request.body
  request.session.user = { id: `id-${username}`, username, roles: ['admin'] }
  response.json({ ok: true })
})
app.use(
  '/api/notices',
  (request, response, next) => {
    if (request.session.user === undefined) response.status(401).json({ success: false })
    else next()
  },
  rateLimit({
    windowMs: 60_000,
    limit: 1_000_000_000,
    standardHeaders: 'draft-6',
    legacyHeaders: false,
    keyGenerator: request => request.session.user.id,
    store: new LimitStore({
      prefix: 'express:limit:',
      sendCommand: (...given) => client.sendCommand(given)
    })
  }),
  createProxyMiddleware({
    target: `${upstream}/notices`,
    agent: new Agent({ keepAlive: true }),
    on: {
      proxyReq: (proxied, { session: { user } }) => {
        proxied.setHeader('x-user-id', user.id)
        proxied.setHeader('x-user-name', user.username)
        proxied.setHeader('x-user-roles', user.roles.join(','))
      }
    }
  })
)
app.listen(Number(port), '127.0.0.1')
process.once('SIGTERM', () => process.exit())
