/** The back-end of all that is measured: as little work as an HTTP server can do, in a process of its own. */
import { createServer, type ServerResponse } from 'node:http'
import { noticesOf, sizes } from './notices.ts'

const chunk = Buffer.alloc(64 * 1024, 'x')
function ready(bytes: number) {
  const body = Buffer.from(JSON.stringify(noticesOf(bytes)))
  const length = String(body.length)
  const fields = ['content-type', 'application/json; charset=utf-8', 'content-length', length]
  return { body, fields }
}
const answers = new Map(
  Object.entries(sizes).map(([name, bytes]) => [`/notices/${name}`, ready(bytes)])
)
/** Made when they are first asked for: `/notices/NUMBER` has so many bytes. */
function answerTo(url: string) {
  const bytes = /^\/notices\/(\d{1,8})$/.exec(url)?.[1]
  if (bytes !== undefined && !answers.has(url)) answers.set(url, ready(Number(bytes)))
  return answers.get(url)
}
const accepted = Buffer.from('{"code":0}')

const server = createServer(
  { keepAliveTimeout: 600_000, requestTimeout: 0 },
  (request, response) => {
    const { url = '', method } = request
    const answer = answerTo(url)
    if (answer !== undefined) return void response.writeHead(200, answer.fields).end(answer.body)
    if (method === 'POST' && url === '/login') return signIn(request, response)
    if (method === 'POST') {
      return void request
        .resume()
        .on('end', () =>
          response
            .writeHead(200, [
              'content-type',
              'application/json',
              'content-length',
              String(accepted.length)
            ])
            .end(accepted)
        )
    }
    if (url.startsWith('/bytes/')) return download(Number(url.slice(7)), response)
    response.writeHead(404, ['content-length', '0']).end()
  }
)

function signIn(request: AsyncIterable<Buffer>, response: ServerResponse): void {
  Array.fromAsync(request).then(
    parts => {
      const { username } = JSON.parse(Buffer.concat(parts).toString()) as { username: string }
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          user: {
            id: `id-${username}`,
            username,
            name: 'A Name of Usual Length',
            roles: ['admin']
          },
          token: 't'.repeat(40)
        })
      )
    },
    () => response.destroy()
  )
}

function download(bytes: number, response: ServerResponse): void {
  response.writeHead(200, [
    'content-type',
    'application/octet-stream',
    'content-length',
    String(bytes)
  ])
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
