/** The back-end of all that is measured: as little work as an HTTP server can do, in a process of its own. */
import { createServer, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

const json = 'application/json; charset=utf-8'
const chunk = Buffer.alloc(64 * 1024, 'x')

function answer(type: string, body: Buffer) {
  const fields = ['content-type', type, 'content-length', String(body.length)]
  return (response: ServerResponse) => response.writeHead(200, fields).end(body)
}

const signedIn = {
  user: { id: 'id', username: 'user', name: 'A Name of Usual Length', roles: ['admin'] },
  token: 't'.repeat(40)
}
const uploaded = answer(json, Buffer.from('{}'))
const answers = new Map([
  ['/notices/small', answer(json, notices(4))],
  ['/notices/medium', answer(json, notices(118))]
])

/** 4 have 0.7 KB, 118 have 20 KB. */
function notices(count: number): Buffer {
  const list = Array.from({ length: count }, (_, n) => ({
    noticeId: n,
    subject: `Order ${n} has been paid`,
    body: `The customer has paid; ship it within ${(n % 5) + 1} days.`,
    createdAt: 1_795_239_000 + n,
    state: String(n % 3),
    ...(n % 2 === 0 && { kind: 'event' }),
    internal: `shard-${n % 7}`
  }))
  return Buffer.from(JSON.stringify({ code: 0, data: { list, count } }))
}

const server = createServer(
  { keepAliveTimeout: 600_000, requestTimeout: 0 },
  (request, response) => {
    const { url = '' } = request
    const known = answers.get(url)
    if (known !== undefined) known(response)
    else if (url === '/bytes/upload') request.resume().once('end', () => uploaded(response))
    else if (url === '/login') void signIn(request, response)
    else if (url.startsWith('/bytes/')) download(Number(url.slice(7)), response)
    else response.writeHead(404, ['content-length', '0']).end()
  }
)

async function signIn(request: AsyncIterable<Buffer>, response: ServerResponse): Promise<void> {
  const { username } = JSON.parse(Buffer.concat(await Array.fromAsync(request)).toString())
  const user = { ...signedIn.user, id: `id-${username}`, username }
  answer(json, Buffer.from(JSON.stringify({ ...signedIn, user })))(response)
}

function download(bytes: number, response: ServerResponse): void {
  const type = 'application/octet-stream'
  response.writeHead(200, ['content-type', type, 'content-length', String(bytes)])
  const chunks = (function* () {
    for (let left = bytes; left > 0; left -= chunk.length) yield chunk.subarray(0, left)
  })()
  Readable.from(chunks).pipe(response)
}

server.listen(Number(process.argv[2]), '127.0.0.1', () => process.send?.('ready'))
process.once('disconnect', () => process.exit())
