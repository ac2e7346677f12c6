/**
 * Holds a listening socket as systemd does, and starts a program with it as descriptor 3 again and again, until it ends
 * with another code than 0. Its own event loop stands still meanwhile: it takes no connection itself.
 * node holder.js PORT PROGRAM ARGUMENT…
 */
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:net'

const [port, ...words] = process.argv.slice(2)
const server = createServer()
server.listen({ port: Number(port), host: '127.0.0.1', reusePort: true, backlog: 511 }, () => {
  const command = 'LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=console exec "$0" "$@"'
  const { _handle: handle } = /** @type {any} */ (server)
  const stdio = ['ignore', 'inherit', 'inherit', handle.fd]
  while (spawnSync('sh', ['-c', command, ...words], { stdio }).status === 0);
  process.exit()
})
