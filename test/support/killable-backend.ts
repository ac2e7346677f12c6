/**
 * A back-end that is killed and started again: a process of its own. It tells each request on
 * stdout before it answers, as `METHOD ID`.
 */
import { createServer } from 'node:http'
import { writeSync } from 'node:fs'

const port = Number(process.argv[2])
const block = `${process.pid};`.padEnd(16, '.')
const chunk = Buffer.from(block.repeat(1024))

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://b')
  writeSync(1, `${request.method} ${url.searchParams.get('id')}\n`)
  request.resume()
  if (url.pathname.startsWith('/streamed')) {
    // 256 KiB in sixteen pieces, so that a kill meets many in the middle.
    let left = 16
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': 16 * chunk.length })
    const send = () => {
      if (left-- === 0) return response.end()
      response.write(chunk)
      setTimeout(send, 2)
    }
    return send()
  }
  // Some take a while: a kill meets them too.
  setTimeout(
    () => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ data: { by: block.repeat(Math.ceil(Math.random() * 200)) } }))
    },
    Math.random() < 0.3 ? 20 : 0
  )
})
server.listen(port, '127.0.0.1', () => writeSync(1, 'listening\n'))
