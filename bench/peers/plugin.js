/** Peer: @fastify/http-proxy and nothing else. */
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'

const [port, upstream] = process.argv.slice(2)
const app = Fastify()
for (const scope of ['/api', '/api/public']) {
  await app.register(httpProxy, { upstream, prefix: `${scope}/notices`, rewritePrefix: '/notices' })
  await app.register(httpProxy, { upstream, prefix: `${scope}/shaped`, rewritePrefix: '/notices' })
}
await app.register(httpProxy, { upstream, prefix: '/api/files', rewritePrefix: '/bytes' })
app.get('/ready', async () => 'ready')
await app.listen({ port: Number(port), host: '127.0.0.1' })
process.once('SIGTERM', () => process.exit())
