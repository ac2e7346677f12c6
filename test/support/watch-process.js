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

/** What keeps descriptors, in words: sockets by their ports and state, everything else by its class. */
function handles() {
  const all = /** @type {any} */ (process)['_getActiveHandles']()
  return all.map((/** @type {any} */ handle) => {
    const { localPort, remotePort, readableFlowing, writableLength } = handle
    const response = handle['_httpMessage']
    if (remotePort === undefined && handle.constructor.name !== 'Socket') {
      return handle.constructor.name
    }
    const owner = handle.server === undefined || handle.server === null ? 'our own' : 'a client’s'
    const answer = response ? `, answering ${response.req?.method} ${response.req?.url}` : ''
    return (
      `${owner} ${handle.constructor.name} ${localPort} → ${remotePort}, ` +
      `flowing ${readableFlowing}, to write ${writableLength}, ended ${handle.readableEnded}, ` +
      `destroyed ${handle.destroyed}${answer}`
    )
  })
}
