/**
 * Loaded into a gateway's process by `--import`, before the gateway itself: on SIGWINCH it collects
 * garbage and writes what is left, and what is open, into the file that MEMORY_REPORT names.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'

const { MEMORY_REPORT: report } = process.env

if (report !== undefined) process.on('SIGWINCH', () => void collect(report))

/** @param {string} file */
async function collect(file) {
  const { gc } = globalThis
  // What finalizers let go is only freed by the next collection.
  for (let times = 0; times < 4; times++) {
    gc?.()
    await turn()
  }
  writeFileSync(
    `${file}.part`,
    JSON.stringify({ memory: process.memoryUsage(), handles: handles() })
  )
  renameSync(`${file}.part`, file)
}

/** What keeps descriptors, in words: sockets by their ports, everything else by its class. */
function handles() {
  const all = /** @type {any} */ (process)['_getActiveHandles']()
  return all.map((/** @type {any} */ handle) => {
    const { localPort, remotePort, constructor, server, _httpMessage: response } = handle
    if (remotePort === undefined && constructor.name !== 'Socket') return constructor.name
    const owner = server === undefined || server === null ? 'our own' : 'a client’s'
    const answer = response ? `, answering ${response.req?.method} ${response.req?.url}` : ''
    return `${owner} ${constructor.name} ${localPort} → ${remotePort}${answer}`
  })
}
