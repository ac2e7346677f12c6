/** Peer: the shape written by hand in a handler, and the same without it. */
import Fastify from 'fastify'
import { Pool } from 'undici'

const [port, upstream] = process.argv.slice(2)
const app = Fastify()
const pool = new Pool(upstream, { connections: 128, pipelining: 1 })
app.get('/api/public/notices/:size', async (request, reply) => {
  const { statusCode, headers, body } = await pool.request({
    method: 'GET',
    path: `/notices/${request.params.size}`
  })
  return reply
    .code(statusCode)
    .headers(headers)
    .send(Buffer.from(await body.arrayBuffer()))
})
app.get('/api/public/shaped/:size', async (request, reply) => {
  const { body } = await pool.request({ method: 'GET', path: `/notices/${request.params.size}` })
  const answer = await body.json()
  if (answer.code !== 0) return reply.code(502).send({ ok: false, success: false })
  return shapedByHand(answer)
})
app.get('/ready', async () => 'ready')
await app.listen({ port: Number(port), host: '127.0.0.1' })
process.once('SIGTERM', () => process.exit())

/** The same as the shape in `subjects.ts`. */
function shapedByHand({ data: { list, count } }) {
  const data = list.map(({ noticeId, subject, body, createdAt, state, kind }) => ({
    id: String(noticeId),
    title: subject,
    description: body,
    datetime: new Date(createdAt * 1000).toISOString(),
    status: state === '0' ? 'unread' : state === '1' ? 'read' : 'unknown',
    type: kind ?? 'notification'
  }))
  return { ok: true, code: 0, message: 'OK', success: true, data, total: count }
}
