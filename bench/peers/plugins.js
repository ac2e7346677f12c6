/** Peer: the bare plugin in so many processes. */
import cluster from 'node:cluster'

const count = Number(process.env.PROCESSES)
if (count > 1 && cluster.isPrimary) {
  for (let index = 0; index < count; index++) cluster.fork()
  process.once('SIGTERM', () => process.exit())
} else {
  await import('./plugin.js')
}
