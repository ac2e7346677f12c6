/** The back-end of all that is measured: as little work as an HTTP server can do, in a process of its own. */
import { createServer, type ServerResponse } from 'node:http'

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
const answers = new Map([
  ['/notices/small', answer(json, notices(720))],
  ['/notices/medium', answer(json, notices(20_000))]
])

/** A list of as many notices as fit. */
function notices(bytes: number): Buffer {
  const list: object[] = []
  for (let n = 1; ; n++) {
    const notice = {
      noticeId: n,
      subject: `Order ${n} has been paid`,
      body: `The customer has paid; ship it within ${(n % 5) + 1} days.`,
      createdAt: 1_795_239_000 + n,
      state: String(n % 3),
      ...(n % 2 === 0 && { kind: 'event' }),
      internal: `shard-${n % 7}`
    }
    const longer = [...list, notice]
    const text = JSON.stringify({ code: 0, data: { list: longer, count: longer.length } })
    if (text.length > bytes) break
    list.push(notice)
  }
  return Buffer.from(JSON.stringify({ code: 0, data: { list, count: list.length } }))
}

const server = createServer(
  { keepAliveTimeout: 600_000, requestTimeout: 0 },
  (request, response) => {
    const { url = '' } = request
    const known = answers.get(url)
    if (known !== undefined) known(response)
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
  let left = bytes
  const more = () => {
    while (left > 0) {
      const part = left < chunk.length ? chunk.subarray(0, left) : chunk
      left -= part.length
      if (!response.write(part)) return void response.once('drain', more)
    }
    response.end()
  }
  more()
}

server.listen(Number(process.argv[2]), '127.0.0.1', () => process.send?.('ready'))
process.once('disconnect', () => process.exit())
